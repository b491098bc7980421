// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"cmp"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// taints has a worker's kubelet register the Node with the Machine's taints for its initialization, so that no pod comes in before
// Cluster API has seen the Node.
//
// Taints that Cluster API always keeps are its controller's alone, and so are a control plane's, where Talos' own taint holds pods off.
// The taints are the kubelet's and not those of Talos' node settings: Talos would put them back for ever, which these taints are not
// meant to be, and a worker may not even do that. The API server refuses the whole update then, labels and annotations with it.
func (s *system) taints() {
	if s.in.Machine.ControlPlane {
		return
	}

	var taints []clusterv1.MachineTaint

	for _, taint := range s.in.Machine.Taints {
		if taint.Propagation == clusterv1.MachineTaintPropagationOnInitialization {
			taints = append(taints, taint)
		}
	}

	if len(taints) == 0 {
		return
	}

	// The list is a set by key and effect: its order must not change a node's config.
	slices.SortFunc(taints, func(a, b clusterv1.MachineTaint) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Effect, b.Effect))
	})

	registered := make([]any, len(taints))

	for i, taint := range taints {
		entry := map[string]any{"key": taint.Key, "effect": string(taint.Effect)}
		if taint.Value != "" {
			entry["value"] = taint.Value
		}

		registered[i] = entry
	}

	source := Source{Layer: LayerSystem, Kind: s.in.Machine.Kind, Name: s.in.Machine.Name, Path: "spec.taints"}
	kubelet := meta.Unstructured{Object: map[string]any{"registerWithTaints": registered}}

	if s.modernKubernetes() {
		document := k8s.NewKubeletConfigV1Alpha1()
		document.KubeletConfig = kubelet
		s.put(source, document)

		return
	}

	s.put(source, legacy(func(machine *v1alpha1.MachineConfig, _ *v1alpha1.ClusterConfig) {
		machine.MachineKubelet = &v1alpha1.KubeletConfig{KubeletExtraConfig: kubelet}
	}))
}
