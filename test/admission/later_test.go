// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
)

// The etcd of Talos 1.14 lacks flags that the one before had. Who has them in a patch is told when the patch comes, and who brings Talos 1.14 to
// machines that the patch applies to is told again, with the flag and what to write instead; with Talos 1.13 all is well.
func TestFlagsOfAnEarlierEtcd(t *testing.T) {
	const (
		flags  = "documents: [{kind: Config, config: {cluster: {etcd: {extraArgs: {experimental-corrupt-check-time: [4h], experimental-enable-lease-checkpoint: ['true']}}}}}]"
		rename = "/cluster/etcd/extraArgs/experimental-corrupt-check-time: is no flag of etcd 3.7, which Talos 1.14 runs and which does not start with it: write corrupt-check-time"
		gate   = "/cluster/etcd/extraArgs/experimental-enable-lease-checkpoint: is no flag of etcd 3.7, which Talos 1.14 runs and which does not start with it: remove it"
	)

	t.Run("when the patch comes", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(admin.Create(t.Context(), object("TalosConfigPatch", "early-patch", "{layer: Role, role: ControlPlane, clusterName: early, "+flags+"}"), client.DryRunAll)).To(Succeed())
		g.Expect(warnings.all()).To(And(MatchRegexp("early-patch.*%s", rename), MatchRegexp("early-patch.*%s", gate)))

		// A patch for workers, and one with an etcd of its own, have no such problem.
		for name, spec := range map[string]string{
			"early-worker": "{layer: Role, role: Worker, clusterName: early, documents: [{kind: Config, config: {machine: {sysctls: {vm.max_map_count: '262144'}}}}]}",
			"early-image":  "{layer: Role, role: ControlPlane, clusterName: early, documents: [{kind: Config, config: {cluster: {etcd: {image: 'registry.k8s.io/etcd:v3.6.8', extraArgs: {experimental-memory-mlock: ['true']}}}}}]}",
		} {
			g.Expect(admin.Create(t.Context(), object("TalosConfigPatch", name, spec), client.DryRunAll)).To(Succeed())
			g.Expect(warnings.all()).NotTo(ContainSubstring(name))
		}
	})

	// The patches of a cluster are told of by the name of the cluster: each case has its own.
	told := func(name string) string { return name + ".*" + rename }
	stage := func(t *testing.T, name string, patched bool) {
		t.Helper()

		cluster := &clusterv1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec: clusterv1.ClusterSpec{
				ControlPlaneRef:      clusterv1.ContractVersionedObjectReference{APIGroup: controlplanev1.GroupVersion.Group, Kind: "TalosControlPlane", Name: name},
				ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "192.0.2.1", Port: 6443}, Paused: new(true),
			},
		}
		create(t, cluster)

		if patched {
			create(t, object("TalosConfigPatch", name, "{layer: Role, role: ControlPlane, clusterName: "+name+", "+flags+"}"))
		}
	}

	for name, test := range map[string]struct {
		kind, before, after string
		patched, warned     bool
	}{
		"cluster-goes-on":       {"TalosClusterConfig", "{clusterName: cluster-goes-on, talos: {version: v1.13.4}}", "{clusterName: cluster-goes-on, talos: {version: v1.14.1}}", true, true},
		"cluster-begins-there":  {"TalosClusterConfig", "", "{clusterName: cluster-begins-there, talos: {version: v1.14.1}}", true, true},
		"cluster-pool-goes-on":  {"TalosClusterConfig", "{clusterName: cluster-pool-goes-on, talos: {version: v1.13.4}}", "{clusterName: cluster-pool-goes-on, talos: {version: v1.13.4, configContract: v1.13, pools: [{name: canary, version: v1.14.1, machineSelector: {}}]}}", true, true},
		"cluster-stays":         {"TalosClusterConfig", "{clusterName: cluster-stays, talos: {version: v1.13.4}}", "{clusterName: cluster-stays, talos: {version: v1.13.5}}", true, false},
		"cluster-without-flags": {"TalosClusterConfig", "", "{clusterName: cluster-without-flags, talos: {version: v1.14.1}}", false, false},
		"plane-goes-on":         {"TalosControlPlane", controlPlane(", talosConfigSpec: {configContract: v1.13}"), controlPlane(", talosConfigSpec: {configContract: v1.14}"), true, true},
		"plane-begins-there":    {"TalosControlPlane", "", controlPlane(", talosConfigSpec: {configContract: v1.14}"), true, true},
		"plane-stays":           {"TalosControlPlane", controlPlane(", talosConfigSpec: {configContract: v1.13}"), controlPlane(", talosConfigSpec: {configContract: v1.13, platform: Cloud}"), true, false},
		"plane-without-flags":   {"TalosControlPlane", "", controlPlane(", talosConfigSpec: {configContract: v1.14}"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			stage(t, name, test.patched)

			spec := test.after

			if test.before != "" {
				before := object(test.kind, name, test.before)
				before.SetAnnotations(map[string]string{clusterv1.PausedAnnotation: ""})
				create(t, before)
			}

			// The caches may not have the Cluster and the patch yet. What comes of the patch itself has another beginning.
			ask := func() string {
				if test.before == "" {
					g.Expect(admin.Create(t.Context(), object(test.kind, name, spec), client.DryRunAll)).To(Succeed())
				} else {
					patch := append(append([]byte(`{"spec":`), jsonOf(t, spec)...), '}')
					g.Expect(admin.Patch(t.Context(), object(test.kind, name, "{}"), client.RawPatch("application/merge-patch+json", patch), client.DryRunAll)).To(Succeed())
				}

				return warnings.all()
			}

			if test.warned {
				g.Eventually(ask, time.Minute, 100*time.Millisecond).Should(MatchRegexp("no control-plane machine gets a config from then on, because of .*" + told(name)))

				return
			}

			g.Consistently(ask, 2*time.Second, 200*time.Millisecond).ShouldNot(MatchRegexp("because of .*" + name))
		})
	}

	// A patch that the control plane refers to applies whatever it targets.
	t.Run("a patch by reference", func(t *testing.T) {
		g := NewWithT(t)
		create(t, object("TalosConfigPatch", "referred", "{layer: Pool, "+flags+"}"))
		g.Expect(admin.Create(t.Context(), object("TalosControlPlane", "referring",
			controlPlane(", talosConfigSpec: {configContract: v1.14, patchRefs: [{name: referred}]}")), client.DryRunAll)).To(Succeed())
		g.Expect(warnings.all()).To(MatchRegexp("spec.talosConfigSpec.configContract: .* because of .*" + told("referred")))
	})
}
