// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

func TestSelectContract(t *testing.T) {
	t.Parallel()

	type objects struct {
		pins                                     machineconfig.Pins
		talosConfig, clusterConfig, clusterTalos string
		noClusterConfig                          bool
	}

	cases := map[string]struct {
		in     objects
		want   string
		at     string // the fault's source
		reason machineconfig.Reason
	}{
		"what the machine was first rendered with, before all": {
			in:   objects{pins: machineconfig.Pins{Machine: "v1.10", Cluster: "v1.11"}, talosConfig: "v1.12", clusterConfig: "v1.13", clusterTalos: "v1.14.1"},
			want: "v1.10",
		},
		"the TalosConfig's": {
			in:   objects{pins: machineconfig.Pins{Cluster: "v1.11"}, talosConfig: "v1.12", clusterConfig: "v1.13", clusterTalos: "v1.14.1"},
			want: "v1.12",
		},
		"the TalosClusterConfig's": {
			in:   objects{pins: machineconfig.Pins{Cluster: "v1.11"}, clusterConfig: "v1.13", clusterTalos: "v1.14.1"},
			want: "v1.13",
		},
		"the cluster's pinned one, which an upgrade does not change": {
			in: objects{pins: machineconfig.Pins{Cluster: "v1.11"}, clusterTalos: "v1.14.1"}, want: "v1.11",
		},
		"the minor of the cluster's Talos": {in: objects{clusterTalos: "v1.13.4"}, want: "v1.13"},
		"the pinned one without a TalosClusterConfig": {
			in: objects{pins: machineconfig.Pins{Cluster: "v1.12"}, noClusterConfig: true}, want: "v1.12",
		},
		"none, without a TalosClusterConfig": {
			in: objects{noClusterConfig: true}, at: "Base layer: TalosConfig w1", reason: machineconfig.ReasonContractUnknown,
		},
		"none, with an empty TalosClusterConfig": {at: "Base layer: TalosConfig w1", reason: machineconfig.ReasonContractUnknown},
		"unknown in the TalosConfig": {
			in: objects{talosConfig: "v1.99", clusterTalos: "v1.14.1"}, at: "Base layer: TalosConfig w1 spec.configContract", reason: machineconfig.ReasonRenderFailed,
		},
		"a version in the TalosClusterConfig": {
			in: objects{clusterConfig: "v1.13.4"}, at: "Base layer: TalosClusterConfig c1 spec.talos.configContract", reason: machineconfig.ReasonRenderFailed,
		},
		"no version": {
			in: objects{clusterTalos: "latest"}, at: "Base layer: TalosClusterConfig c1 spec.talos.version", reason: machineconfig.ReasonRenderFailed,
		},
		"a machine's pin that is none": {
			in: objects{pins: machineconfig.Pins{Machine: "1.13"}, clusterTalos: "v1.14.1"},
			at: "Base layer: TalosConfig w1 status.configContract", reason: machineconfig.ReasonRenderFailed,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			talosConfig := &bootstrapv1.TalosConfig{ObjectMeta: metav1.ObjectMeta{Name: "w1"}}
			talosConfig.Spec.ConfigContract = tc.in.talosConfig

			clusterConfig := &bootstrapv1.TalosClusterConfig{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
			clusterConfig.Spec.Talos.ConfigContract, clusterConfig.Spec.Talos.Version = tc.in.clusterConfig, tc.in.clusterTalos

			if tc.in.noClusterConfig {
				clusterConfig = nil
			}

			contract, err := machineconfig.SelectContract(talosConfig, clusterConfig, tc.in.pins)
			if diff := cmp.Diff(tc.want, contract.String()); diff != "" {
				t.Errorf("contract (-want +got):\n%s", diff)
			}

			at := ""
			if faults := machineconfig.Errors(err); len(faults) > 0 {
				at = faults[0].Source.String()
			}

			if at != tc.at || machineconfig.ReasonOf(err) != tc.reason {
				t.Errorf("%v: at %q with reason %q, want %q with %q", err, at, machineconfig.ReasonOf(err), tc.at, tc.reason)
			}
		})
	}
}

func TestSelectClusterConfig(t *testing.T) {
	t.Parallel()

	config := func(name, namespace, cluster string, labels map[string]string) bootstrapv1.TalosClusterConfig {
		made := bootstrapv1.TalosClusterConfig{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
		made.Spec.ClusterName = cluster

		if labels != nil {
			made.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: labels}
		}

		return made
	}
	lab := map[string]string{"site": "lab"}
	broken := config("broken", namespace, "", nil)
	broken.Spec.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "site", Operator: "Is"}}}

	cases := map[string]struct {
		configs []bootstrapv1.TalosClusterConfig
		want    string
		reason  machineconfig.Reason
		tells   []string
	}{
		"none":                                {},
		"by name":                             {configs: []bootstrapv1.TalosClusterConfig{config("a", namespace, "c1", nil)}, want: "a"},
		"by label":                            {configs: []bootstrapv1.TalosClusterConfig{config("a", namespace, "", lab)}, want: "a"},
		"of another cluster":                  {configs: []bootstrapv1.TalosClusterConfig{config("a", namespace, "c2", nil), config("b", namespace, "", map[string]string{"site": "x"})}},
		"of another namespace":                {configs: []bootstrapv1.TalosClusterConfig{config("a", "other", "c1", nil), config("b", "other", "", lab)}},
		"one of this and one of that cluster": {configs: []bootstrapv1.TalosClusterConfig{config("a", namespace, "c2", nil), config("b", namespace, "c1", nil)}, want: "b"},
		"two": {
			configs: []bootstrapv1.TalosClusterConfig{config("b", namespace, "c1", nil), config("a", namespace, "", lab)},
			reason:  machineconfig.ReasonAmbiguousClusterConfig, tells: []string{"a, b"},
		},
		"a broken selector beside a good one": {
			configs: []bootstrapv1.TalosClusterConfig{config("a", namespace, "c1", nil), broken},
			reason:  machineconfig.ReasonRenderFailed, tells: []string{"TalosClusterConfig broken", "clusterSelector"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			selected, err := machineconfig.SelectClusterConfig(input(t, "v1.14", false).Cluster, tc.configs)

			got := ""
			if selected != nil {
				got = selected.Name
			}

			if got != tc.want || machineconfig.ReasonOf(err) != tc.reason {
				t.Errorf("selected %q, error %v; want %q, reason %q", got, err, tc.want, tc.reason)
			}

			for _, part := range tc.tells {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error does not tell %q: %v", part, err)
				}
			}
		})
	}
}

// TestSelectPatches wants the patches of a machine, and their order.
func TestSelectPatches(t *testing.T) {
	t.Parallel()

	// The machine is w1, a Worker with pool=storage, of cluster c1 with site=lab.
	const documents = ", documents: [{kind: KubeNodeConfig, kubeNodeConfig: {labels: {example.com/a: b}}}]"

	patches := map[string]string{
		"cluster-late":     "layer: Cluster, clusterName: c1, priority: 10",
		"cluster-early":    "layer: Cluster, clusterName: c1, priority: -10",
		"cluster-a":        "layer: Cluster, clusterName: c1",
		"cluster-b":        "layer: Cluster, clusterSelector: {matchLabels: {site: lab}}",
		"every-cluster":    "layer: Cluster, clusterSelector: {}",
		"other-cluster":    "layer: Cluster, clusterName: c2",
		"other-site":       "layer: Cluster, clusterSelector: {matchLabels: {site: field}}",
		"workers":          "layer: Role, role: Worker, clusterName: c1",
		"control-planes":   "layer: Role, role: ControlPlane, clusterName: c1",
		"pool":             "layer: Pool, clusterName: c1, machineSelector: {matchLabels: {pool: storage}}, priority: 100",
		"other-pool":       "layer: Pool, clusterName: c1, machineSelector: {matchLabels: {pool: gpu}}",
		"machine":          "layer: Machine, clusterName: c1",
		"by-reference":     "layer: Pool",
		"low-by-reference": "layer: Cluster, priority: -100",
	}

	cases := map[string]struct {
		patches []string
		refs    []string
		other   string // a patch of that name is in another namespace
		want    []string
	}{
		"none": {},
		"layers in order, whatever the names": {
			patches: []string{"machine", "pool", "workers", "cluster-a"},
			want:    []string{"Cluster cluster-a", "Role workers", "Pool pool", "Machine machine"},
		},
		"by priority, then by name": {
			patches: []string{"cluster-late", "cluster-b", "every-cluster", "cluster-a", "cluster-early"},
			want:    []string{"Cluster cluster-early", "Cluster cluster-a", "Cluster cluster-b", "Cluster every-cluster", "Cluster cluster-late"},
		},
		"not what is meant for others": {patches: []string{"other-cluster", "other-site", "control-planes", "other-pool"}},
		"not without a target":         {patches: []string{"by-reference", "low-by-reference"}},
		"not of another namespace":     {patches: []string{"cluster-a"}, other: "cluster-a"},
		"by reference, after the selected ones of the Pool layer, in the order of the references": {
			patches: []string{"by-reference", "low-by-reference", "machine", "pool"}, refs: []string{"low-by-reference", "by-reference"},
			want: []string{"Pool pool", "Pool low-by-reference", "Pool by-reference", "Machine machine"},
		},
		"selected and referenced: once, at the reference": {
			patches: []string{"cluster-a", "cluster-b", "pool"}, refs: []string{"cluster-a"},
			want: []string{"Cluster cluster-b", "Pool pool", "Pool cluster-a"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			in := input(t, "v1.14", false)

			for _, each := range tc.patches {
				text := fmt.Sprintf("metadata: {name: %s}\nspec: {%s%s}", each, patches[each], documents)
				if each == tc.other {
					text = strings.Replace(text, "{name:", "{namespace: elsewhere, name:", 1)
				}

				in.Patches = append(in.Patches, patch(t, text))
			}

			for _, each := range tc.refs {
				in.TalosConfig.Spec.PatchRefs = append(in.TalosConfig.Spec.PatchRefs, bootstrapv1.PatchReference{Name: each})
			}

			// The order in which a cache lists objects must not matter.
			for range 2 {
				slices.Reverse(in.Patches)

				config, err := machineconfig.Render(in)
				if err != nil {
					t.Fatal(err)
				}

				var got []string

				for _, source := range config.Inputs {
					if source.Kind == machineconfig.KindTalosConfigPatch {
						got = append(got, string(source.Layer)+" "+source.Name)
					}
				}

				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("patches (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestNewMachine(t *testing.T) {
	t.Parallel()

	taints := []clusterv1.MachineTaint{{Key: "a", Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationAlways}}
	spec := clusterv1.MachineSpec{
		Version: "v1.34.2", Taints: taints, InfrastructureRef: clusterv1.ContractVersionedObjectReference{Kind: "DockerMachine", Name: "infra"},
	}

	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", Labels: map[string]string{"pool": "a"}}, Spec: spec}
	want := machineconfig.Machine{
		Name: "m", Kind: machineconfig.KindMachine, Labels: map[string]string{"pool": "a"},
		KubernetesVersion: "v1.34.2", InfrastructureName: "infra", Taints: taints,
	}

	got := machineconfig.NewMachine(machine)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("machine (-want +got):\n%s", diff)
	}

	if got.Role() != bootstrapv1.MachineRoleWorker {
		t.Errorf("role %s", got.Role())
	}

	// The label's value says nothing.
	machine.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: "false"}
	if got = machineconfig.NewMachine(machine); !got.ControlPlane || got.Role() != bootstrapv1.MachineRoleControlPlane {
		t.Errorf("a machine with the control-plane label is a %s", got.Role())
	}

	pool := &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"on": "the pool"}}}
	pool.Spec.Template.Labels, pool.Spec.Template.Spec = map[string]string{"on": "the template"}, spec

	want = machineconfig.Machine{
		Name: "p", Kind: machineconfig.KindMachinePool, Labels: map[string]string{"on": "the template"},
		KubernetesVersion: "v1.34.2", InfrastructureName: "infra", Taints: taints,
	}
	if diff := cmp.Diff(want, machineconfig.NewMachinePool(pool)); diff != "" {
		t.Errorf("pool (-want +got):\n%s", diff)
	}
}
