// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// kindsAnswering is a client whose reads of CustomResourceDefinitions succeed, and those of anything else end as they are told to.
func kindsAnswering(t *testing.T, answer func(ctx context.Context, kind string) error) client.Client {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	return interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
			kind := object.GetObjectKind().GroupVersionKind().Kind
			if kind == "CustomResourceDefinition" {
				object.SetLabels(map[string]string{clusterv1.GroupVersion.String(): "v1"})

				return nil
			}

			return answer(ctx, kind)
		},
		List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			return answer(ctx, strings.TrimSuffix(list.GetObjectKind().GroupVersionKind().Kind, "List"))
		},
	})
}

// Kinds that the manager has no rights to cost a reconcile seconds, however many machines there are of them, and are told of.
func TestKindsWithoutRights(t *testing.T) {
	machine := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cp-1"},
		Spec: clusterv1.MachineSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: "infrastructure.example.com", Kind: "FooMachine", Name: "cp-1",
		}},
	}
	tcp := planeWith(nil)
	tcp.Spec.MachineTemplate.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: "infrastructure.example.com", Kind: "FooMachineTemplate", Name: "foo",
	}

	synctest.Test(t, func(t *testing.T) {
		seen := &observation{controlPlane: tcp, cluster: &clusterv1.Cluster{}}
		r := &Reconciler{Client: kindsAnswering(t, func(ctx context.Context, _ string) error {
			<-ctx.Done()

			return apierrors.NewTimeoutError("failed waiting for Informer to sync", 0)
		})}

		begun := time.Now()

		for range 5 {
			if _, err := r.infrastructure(t.Context(), seen, machine); err == nil {
				t.Error("an infrastructure machine was read")
			}
		}

		if err := r.observeTemplate(t.Context(), seen); err != nil {
			t.Error(err)
		}

		// The template can be read after all, and the machines cannot be listed.
		listing := &observation{controlPlane: tcp, unread: seen.unread, template: &metav1.PartialObjectMetadata{}}
		listing.template.SetGroupVersionKind(schema.GroupVersionKind{Group: "infrastructure.example.com", Version: "v1", Kind: "FooMachineTemplate"})

		if _, err := r.infrastructureMachines(t.Context(), listing); err == nil {
			t.Error("infrastructure machines were listed")
		}

		if took := time.Since(begun); took != 2*kindBound {
			t.Errorf("two kinds took %s", took)
		}

		for what, text := range map[string]string{"missing": seen.missing, "unreadable": seen.unreadable()} {
			if !strings.Contains(text, "FooMachineTemplate.infrastructure.example.com cannot be read within 5s") || !strings.Contains(text, `"Rights to machines"`) {
				t.Errorf("%s: %s", what, text)
			}
		}
	})
}

func TestOfKind(t *testing.T) {
	kind := schema.GroupKind{Group: "infrastructure.example.com", Kind: "FooMachine"}
	resource := schema.GroupResource{Group: kind.Group, Resource: "foomachines"}

	tests := map[string]struct {
		err   error
		ended bool
		reads int
		tells string
	}{
		"there":              {nil, false, 2, ""},
		"does not exist":     {apierrors.NewNotFound(resource, "x"), false, 2, ""},
		"forbidden":          {apierrors.NewForbidden(resource, "x", errors.New("no")), false, 1, "Rights to machines"},
		"fails":              {errors.New("no contract"), false, 1, "no contract"},
		"the caller stopped": {context.Canceled, true, 2, ""},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()

			if test.ended {
				cancel()
			}

			seen, reads := &observation{}, 0

			for range 2 {
				err := seen.ofKind(ctx, kind, func(context.Context) error {
					reads++

					return test.err
				})
				if !errors.Is(err, test.err) {
					t.Errorf("%v", err)
				}
			}

			if told := seen.unreadable(); reads != test.reads || !strings.Contains(told, test.tells) || (told == "") != (test.tells == "") {
				t.Errorf("read %d times, told: %q", reads, told)
			}
		})
	}
}
