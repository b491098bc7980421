// SPDX-License-Identifier: Apache-2.0

package clustersecrets

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestCarrierOf(t *testing.T) {
	machine := func(name, cluster string, change func(*clusterv1.Machine)) clusterv1.Machine {
		made := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.MachineSpec{ClusterName: cluster}}
		change(&made)

		return made
	}
	pool := func(name string, change func(*clusterv1.MachinePool)) clusterv1.MachinePool {
		made := clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.MachinePoolSpec{ClusterName: "c"}}
		change(&made)

		return made
	}

	fresh := func(*clusterv1.Machine) {}
	withData := func(m *clusterv1.Machine) { m.Spec.Bootstrap.DataSecretName = new("data") }
	joined := func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "node" }

	tests := map[string]struct {
		machines []clusterv1.Machine
		pools    []clusterv1.MachinePool
		want     string
	}{
		"nothing": {},
		"none has data": {
			machines: []clusterv1.Machine{machine("a", "c", fresh), machine("b", "c", fresh)},
			pools:    []clusterv1.MachinePool{pool("p", func(*clusterv1.MachinePool) {})},
		},
		"another cluster's":    {machines: []clusterv1.Machine{machine("a", "d", withData), machine("b", "d", joined)}},
		"data":                 {machines: []clusterv1.Machine{machine("a", "c", fresh), machine("b", "c", withData)}, want: "Machine b"},
		"joined":               {machines: []clusterv1.Machine{machine("a", "c", joined)}, want: "Machine a"},
		"always the same":      {machines: []clusterv1.Machine{machine("b", "c", joined), machine("a", "c", withData)}, want: "Machine a"},
		"pool with data":       {pools: []clusterv1.MachinePool{pool("p", func(p *clusterv1.MachinePool) { p.Spec.Template.Spec.Bootstrap.DataSecretName = new("data") })}, want: "MachinePool p"},
		"pool with a node":     {pools: []clusterv1.MachinePool{pool("p", func(p *clusterv1.MachinePool) { p.Status.NodeRefs = []corev1.ObjectReference{{Name: "n"}} })}, want: "MachinePool p"},
		"a machine and a pool": {machines: []clusterv1.Machine{machine("z", "c", joined)}, pools: []clusterv1.MachinePool{pool("p", func(p *clusterv1.MachinePool) { p.Status.NodeRefs = []corev1.ObjectReference{{Name: "n"}} })}, want: "Machine z"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, carrierOf("c", test.machines, test.pools)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
