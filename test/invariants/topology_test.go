// SPDX-License-Identifier: Apache-2.0

package invariants_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/invariants"
)

// The topology controller has something to look at each time, nothing of it stays, and who does not look is found.
func TestLookAgain(t *testing.T) {
	tests := map[string]struct {
		status metav1.ConditionStatus
		fault  string
	}{
		"it looks":          {status: metav1.ConditionTrue},
		"it is not content": {status: metav1.ConditionFalse, fault: "the topology of Cluster ns/c is not reconciled (False"},
		"it does not look":  {fault: "the topology of Cluster ns/c is not reconciled"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			g := NewWithT(t)
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
			looked := 0

			c := fake.NewClientBuilder().WithScheme(harness.NewScheme()).WithObjects(cluster).WithStatusSubresource(cluster).
				WithInterceptorFuncs(interceptor.Funcs{
					Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
						if err := c.Patch(ctx, object, patch, options...); err != nil || test.status == "" {
							return err
						}

						looked++

						seen := &clusterv1.Cluster{}
						if err := c.Get(ctx, client.ObjectKeyFromObject(object), seen); err != nil {
							return err
						}

						seen.Status.Conditions = []metav1.Condition{{
							Type: clusterv1.ClusterTopologyReconciledCondition, Status: test.status, ObservedGeneration: seen.Generation,
							Reason: "Played", LastTransitionTime: metav1.Now(),
						}}

						return c.Status().Update(ctx, seen)
					},
				}).Build()

			err := invariants.LookAgain(t.Context(), c, client.ObjectKeyFromObject(cluster), 3, time.Second)
			if test.fault != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.fault)))

				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(looked).To(Equal(4), "three times, and once for what is put back")
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
			g.Expect(cluster.Spec.AvailabilityGates).To(BeEmpty())
		})
	}
}
