// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/storage"
)

type target struct {
	namespace, name, cluster string
	clusters, machines       *metav1.LabelSelector
}

func (x target) object() bootstrapv1.TalosStorage {
	return bootstrapv1.TalosStorage{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: x.name},
		Spec: bootstrapv1.TalosStorageSpec{
			ClusterTargeting: bootstrapv1.ClusterTargeting{ClusterName: x.cluster, ClusterSelector: x.clusters},
			MachineTargeting: bootstrapv1.MachineTargeting{MachineSelector: x.machines},
		},
	}
}

func TestSelect(t *testing.T) {
	t.Parallel()

	pool := func(name string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"pool": name}}
	}
	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "pool", Operator: "Equals", Values: []string{"a"}}}}

	tests := map[string]struct {
		targets []target
		want    string
		wantErr string
	}{
		"none":                                   {},
		"the only one":                           {targets: []target{{namespace: "ns", name: "s", cluster: "c"}}, want: "s"},
		"other cluster":                          {targets: []target{{namespace: "ns", name: "s", cluster: "d"}}},
		"other namespace":                        {targets: []target{{namespace: "other", name: "s", cluster: "c"}}},
		"by cluster label":                       {targets: []target{{namespace: "ns", name: "s", clusters: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "x"}}}}, want: "s"},
		"machine does not match":                 {targets: []target{{namespace: "ns", name: "s", cluster: "c", machines: pool("b")}}},
		"first by name":                          {targets: []target{{namespace: "ns", name: "z", cluster: "c"}, {namespace: "ns", name: "b", cluster: "c"}, {namespace: "ns", name: "m", cluster: "c"}}, want: "b"},
		"first by name that matches the machine": {targets: []target{{namespace: "ns", name: "a", cluster: "c", machines: pool("b")}, {namespace: "ns", name: "b", cluster: "c", machines: pool("a")}}, want: "b"},
		"a more specific selector does not win":  {targets: []target{{namespace: "ns", name: "b", cluster: "c", machines: pool("a")}, {namespace: "ns", name: "a", cluster: "c"}}, want: "a"},
		"neither name nor selector":              {targets: []target{{namespace: "ns", name: "s"}}},
		"broken selector that could be first":    {targets: []target{{namespace: "ns", name: "a", cluster: "c", machines: broken}, {namespace: "ns", name: "b", cluster: "c"}}, wantErr: `TalosStorage a: spec.machineSelector: "Equals" is not a valid label selector operator`},
		"broken selector after the first":        {targets: []target{{namespace: "ns", name: "b", cluster: "c", machines: broken}, {namespace: "ns", name: "a", cluster: "c"}}, want: "a"},
		"broken selector for another cluster":    {targets: []target{{namespace: "ns", name: "a", cluster: "d", machines: broken}, {namespace: "ns", name: "b", cluster: "c"}}, want: "b"},
		"broken selector in another namespace":   {targets: []target{{namespace: "other", name: "a", clusters: broken}, {namespace: "ns", name: "b", cluster: "c"}}, want: "b"},
		"cluster by name and by selector":        {targets: []target{{namespace: "ns", name: "a", cluster: "c", clusters: pool("a")}}, wantErr: `TalosStorage a: spec: clusterName and clusterSelector are both set: remove one of them`},
		"broken cluster selector":                {targets: []target{{namespace: "ns", name: "a", clusters: broken}}, wantErr: `TalosStorage a: spec.clusterSelector: "Equals" is not a valid label selector operator`},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", Labels: map[string]string{"env": "x"}}}

			// The answer must not depend on the order in which a cache lists objects.
			for seed := range uint64(8) {
				objects := []bootstrapv1.TalosStorage{}
				for _, x := range tc.targets {
					objects = append(objects, x.object())
				}

				rand.New(rand.NewPCG(seed, 0)).Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })

				governing, err := storage.Select(cluster, objects, map[string]string{"pool": "a"})
				if diff := cmp.Diff(tc.wantErr, errorText(err)); diff != "" {
					t.Fatalf("error (-want +got):\n%s", diff)
				}

				got := ""
				if governing != nil {
					got = governing.Name
				}

				if got != tc.want {
					t.Errorf("governed by %q, want %q", got, tc.want)
				}
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}

	return err.Error()
}
