// SPDX-License-Identifier: Apache-2.0

package reporting

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

func TestNoCluster(t *testing.T) {
	named := func(names ...string) []clusterv1.Cluster {
		var clusters []clusterv1.Cluster
		for _, name := range names {
			clusters = append(clusters, clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}

		return clusters
	}
	by := func(name string) bootstrapv1.ClusterTargeting { return bootstrapv1.ClusterTargeting{ClusterName: name} }
	selector := bootstrapv1.ClusterTargeting{ClusterSelector: &metav1.LabelSelector{}}

	tests := map[string]struct {
		target   bootstrapv1.ClusterTargeting
		clusters []clusterv1.Cluster
		want     string
	}{
		"a letter too many": {by("prodd"), named("prod", "test"), `spec.clusterName: no Cluster "prodd" is in namespace ns: did you mean "prod"?`},
		"another name":      {by("lab"), named("prod", "test"), `spec.clusterName: no Cluster "lab" is in namespace ns; there are prod, test`},
		"no Cluster":        {by("lab"), nil, `spec.clusterName: no Cluster "lab" is in namespace ns, nor any other`},
		"a selector":        {selector, named("prod"), "spec.clusterSelector selects none of the 1 Clusters in namespace ns"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, NoCluster(test.target, "ns", test.clusters)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
