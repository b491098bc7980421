// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capicontroller "sigs.k8s.io/cluster-api/util/controller"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/rollout"
)

// deferring counts how often the next reconcile was held back.
type deferring struct{ times int }

func (d *deferring) DeferNextReconcileUntilCacheUpToDate(metav1.Object, capicontroller.GroupVersionKindType, string) {
	d.times++
}

func (*deferring) ClearConsistencyStore(client.ObjectKey, types.UID) {}

// What belongs to a Machine is removed only when the Machine does not exist and will not.
//
// contract: what belongs to a Machine that cannot be made is removed again.
func TestMachineThatCannotBeMade(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, bootstrapv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}

	kind := schema.GroupResource{Group: clusterv1.GroupVersion.Group, Resource: "machines"}
	refused := apierrors.NewForbidden(kind, "cp-1", errors.New("no"))
	timeout := apierrors.NewTimeoutError("it took too long", 1)
	proxy := apierrors.NewGenericServerResponse(http.StatusBadGateway, "patch", kind, "cp-1", "", 0, true)
	ours := newMachine(planeWith(nil), "prod", "cp-1", rollout.CreateMachine{})
	others := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cp-1"}}

	tests := map[string]struct {
		fault   error
		machine *clusterv1.Machine
		blind   bool
		ended   bool
		kept    bool
		made    bool
	}{
		"refused":                        {fault: refused},
		"refused at the last moment":     {fault: refused, ended: true},
		"refused, and nobody says more":  {fault: refused, blind: true, kept: true},
		"refused, another's has it":      {fault: refused, machine: others, kept: true},
		"not answered, and it is there":  {fault: timeout, machine: ours, kept: true, made: true},
		"not answered, and not there":    {fault: timeout, kept: true},
		"the time was over, it is there": {fault: context.DeadlineExceeded, machine: ours, ended: true, kept: true, made: true},
		"the time was over":              {fault: context.DeadlineExceeded, ended: true, kept: true},
		"a proxy's answer":               {fault: proxy, kept: true},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			config := newConfig(planeWith(nil), "prod", "cp-1")
			config.Namespace, config.UID = "ns", "config"

			build := fake.NewClientBuilder().WithScheme(scheme).WithObjects(config)
			if test.machine != nil {
				build = build.WithObjects(test.machine.DeepCopy())
			}

			all := build.Build()
			live := interceptor.NewClient(all, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					if test.blind {
						return errors.New("no connection")
					}

					if err := ctx.Err(); err != nil {
						return err
					}

					return c.Get(ctx, key, object, options...)
				},
			})

			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()

			if test.ended {
				cancel()
			}

			held := &deferring{}
			r := &Reconciler{Client: all, APIReader: live, deferrer: held}

			err := r.notMade(ctx, &observation{controlPlane: planeWith(nil)}, test.fault, "cp-1", config)
			if made := err == nil; made != test.made || !made && !errors.Is(err, test.fault) {
				t.Errorf("made: %t, %v", made, err)
			}

			if made := held.times == 1; made != test.made {
				t.Errorf("the next reconcile was held back %d times", held.times)
			}

			err = all.Get(t.Context(), client.ObjectKeyFromObject(config), &bootstrapv1.TalosConfig{})
			if kept := err == nil; kept != test.kept {
				t.Errorf("the TalosConfig is there: %t, %v", kept, err)
			}
		})
	}
}
