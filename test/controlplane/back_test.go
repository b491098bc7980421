// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/test/builder"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
)

// earlier is the minor before builder.KubernetesVersion.
const earlier = "v1.35.4"

// An upgrade to the next minor goes wrong with the first machine: it is never well. Its user sets the version back, and that machine goes; those
// of before are there throughout, and so is the quorum. Then the upgrade is made
// once more, on machines that come up.
//
// contract: an upgrade that fails with its first machine is taken back.
func TestUpgradeTakenBack(t *testing.T) {
	tests := map[string]struct {
		fidelity infrav1.Fidelity
		faults   infrav1.Faults
		reason   string
		says     []string

		// votes says whether etcd has the machine, too, when the version is set back.
		votes, long bool
	}{
		"it never boots": {
			fidelity: infrav1.FidelityInMemory, faults: neverBoots.Faults,
			reason: controlplanev1.PlanWaitingForMachineReason, says: []string{"has no Node yet"},
		},
		"it stays a learner": {
			fidelity: infrav1.FidelityFull, faults: infrav1.Faults{EtcdNeverCatchesUp: true},
			reason: controlplanev1.PlanWaitingForMachineReason, says: []string{"is a learner"}, long: true,
		},
		"it votes, and its kubelet is not well": {
			fidelity: infrav1.FidelityFull, faults: infrav1.Faults{NeverReady: ":" + builder.TalosVersion},
			reason: controlplanev1.PlanMachineUnhealthyReason, says: []string{"TalosHealthy", "kubelet"}, votes: true, long: true,
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.long {
				onlyLong(t)
			}

			s := newScenario(t)
			t.Parallel()

			control := replaced(infrav1.SimMachineSpec{}, 3).With(func(tcp *controlplanev1.TalosControlPlane) { tcp.Spec.Version = earlier })
			s.Create(builder.Cluster("c").On(builder.Sim{Fidelity: test.fidelity}).ControlPlane(control))
			old := names(s.settled(3))

			s.Create(builder.These{builder.Sim{MachineSpec: infrav1.SimMachineSpec{Faults: test.faults}}.Template("broken")})
			s.upgrade(builder.KubernetesVersion, "broken")

			fresh := s.another(old)
			s.Plans(test.reason, append([]string{fresh}, test.says...)...)
			s.held(append([]string{fresh}, old...))

			if test.votes {
				s.Voters(s.machineList(), 4)
			}

			s.upgrade(earlier, "cp")
			s.Gone(&clusterv1.Machine{}, fresh)
			s.Expect(names(s.settled(3))).To(ConsistOf(old))

			if test.long {
				s.upgrade(builder.KubernetesVersion, "cp")
				s.Expect(names(s.settled(3))).NotTo(ContainElements(old))
			}

			s.deleteCluster()
		})
	}
}

// upgrade wants another Kubernetes version, on machines of a template.
func (s *scenario) upgrade(version, template string) {
	s.t.Helper()

	s.change(func(tcp *controlplanev1.TalosControlPlane) {
		tcp.Spec.Version = version
		tcp.Spec.MachineTemplate.Spec.InfrastructureRef.Name = template
	})
}
