// SPDX-License-Identifier: Apache-2.0

package pausing

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

// That the API server refuses the first status of an object can be told from the error.
func TestRefusedStatus(t *testing.T) {
	g := NewWithT(t)

	scheme := runtime.NewScheme()
	g.Expect(bootstrapv1.AddToScheme(scheme)).To(Succeed())

	config := &bootstrapv1.TalosConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w-1"}}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(config).WithStatusSubresource(config).Build()
	refusing := interceptor.NewClient(api, interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "talosconfigs/status"}, "w-1", errors.New("no right"))
		},
	})
	g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(config), config)).To(Succeed())

	_, _, err := Ensure(t.Context(), refusing, nil, config, &config.Status.ObservedGeneration)
	g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
}
