// SPDX-License-Identifier: Apache-2.0

package reporting_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	capicontroller "sigs.k8s.io/cluster-api/util/controller"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/reporting"
	"github.com/maesh-dev/ichor/internal/consistency"
)

// deferred has the versions that a next reconcile waits for.
type deferred struct {
	consistency.Deferrer

	versions []string
}

func (d *deferred) DeferNextReconcileUntilCacheUpToDate(_ metav1.Object, _ capicontroller.GroupVersionKindType, version string) {
	d.versions = append(d.versions, version)
}

// The next reconcile waits for the cache to have what was written. What the API server did not take, or nobody had to write, it waits not for.
func TestWriteDefers(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "talosconfigpatches"}, "p", nil)

	for name, test := range map[string]struct {
		changed, waits bool
		fault          error
		again          bool
	}{
		"written":          {changed: true, waits: true},
		"nothing to write": {},
		"a conflict":       {changed: true, fault: conflict, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(bootstrapv1.AddToScheme(scheme)).To(Succeed())

			before := &bootstrapv1.TalosConfigPatch{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(before).WithStatusSubresource(before).WithInterceptorFuncs(interceptor.Funcs{
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
					if test.fault != nil {
						return test.fault
					}

					return c.SubResource(sub).Patch(ctx, object, patch, options...)
				},
			}).Build()
			g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(before), before)).To(Succeed())

			now := before.DeepCopy()
			if test.changed {
				now.Status.ObservedGeneration = 3
			}

			waits := &deferred{}
			result, err := reporting.Writer{Client: api, Deferrer: waits}.Write(t.Context(), before, now)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(result.RequeueAfter > 0).To(Equal(test.again))

			stored := &bootstrapv1.TalosConfigPatch{}
			g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(before), stored)).To(Succeed())

			if test.waits {
				g.Expect(waits.versions).To(HaveExactElements(stored.ResourceVersion))
				g.Expect(stored.ResourceVersion).NotTo(Equal(before.ResourceVersion))
			} else {
				g.Expect(waits.versions).To(BeEmpty())
			}
		})
	}
}
