// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/maesh-dev/ichor/test/builder"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	play "github.com/maesh-dev/ichor/test/scenario"
	"github.com/maesh-dev/ichor/test/tools"
)

// What a user applies becomes a cluster in which everything is well, and clusterctl shows nothing else.
func TestGreen(t *testing.T) {
	tests := map[string]struct {
		replicas int32
		long     bool
	}{
		"one control-plane machine":    {replicas: 1},
		"three control-plane machines": {replicas: 3, long: true},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.long {
				onlyLong(t)
			}

			s := newScenario(t)
			t.Parallel()

			s.Step("create the cluster", func() {
				s.Create(
					builder.Cluster("c").On(builder.Sim{Fidelity: infrav1.FidelityFull, FailureDomains: domains}).ControlPlane(builder.ControlPlane("c", "cp", test.replicas)),
					builder.Workers("c", "workers", 1),
				)
				s.spread(s.settled(int(test.replicas)))
				s.available()
			})
			s.describesGreen()
			s.deleteCluster()
		})
	}
}

// domains are three for control planes, and one that is not, which comes first by name.
var domains = []clusterv1.FailureDomain{
	{Name: "a", ControlPlane: new(false)}, {Name: "b", ControlPlane: new(true)}, {Name: "c", ControlPlane: new(true)}, {Name: "d", ControlPlane: new(true)},
}

// spread checks that no two Machines are in one failure domain, as long as there are not more than domains for them.
func (s *scenario) spread(list []clusterv1.Machine) {
	s.t.Helper()

	used := map[string]bool{}
	for i := range list {
		used[list[i].Spec.FailureDomain] = true
	}

	s.Expect(used).To(HaveLen(len(list)))
	s.Expect(used).NotTo(Or(HaveKey("a"), HaveKey("")))
}

// available waits until Cluster API says that the Cluster and all that belongs to it are available, and that nothing changes any more.
func (s *scenario) available() {
	s.t.Helper()

	s.Eventually(func(g Gomega) {
		cluster := &clusterv1.Cluster{}
		g.Expect(s.Client.Get(s.ctx, s.key("c"), cluster)).To(Succeed())

		for _, condition := range []string{
			clusterv1.ClusterAvailableCondition, clusterv1.ClusterControlPlaneAvailableCondition, clusterv1.ClusterControlPlaneInitializedCondition,
			clusterv1.ClusterControlPlaneMachinesReadyCondition, clusterv1.ClusterControlPlaneMachinesUpToDateCondition,
			clusterv1.ClusterWorkersAvailableCondition, clusterv1.ClusterWorkerMachinesReadyCondition, clusterv1.ClusterWorkerMachinesUpToDateCondition,
			clusterv1.ClusterInfrastructureReadyCondition, clusterv1.ClusterRemoteConnectionProbeCondition,
		} {
			g.Expect(conditions.IsTrue(cluster, condition)).To(BeTrue(), "%s: %s", condition, play.Describe(cluster))
		}

		for _, condition := range []string{
			clusterv1.ClusterRollingOutCondition, clusterv1.ClusterScalingUpCondition, clusterv1.ClusterScalingDownCondition,
			clusterv1.ClusterRemediatingCondition, clusterv1.ClusterDeletingCondition, clusterv1.PausedCondition,
		} {
			g.Expect(conditions.IsFalse(cluster, condition)).To(BeTrue(), "%s: %s", condition, play.Describe(cluster))
		}
	}).Should(Succeed())
	s.t.Logf("available after %s", time.Since(s.begin).Round(100*time.Millisecond))
}

// wanted are the conditions that are false where all is well.
var wanted = []string{
	clusterv1.PausedCondition, clusterv1.DeletingCondition, clusterv1.ScalingUpCondition, clusterv1.ScalingDownCondition,
	clusterv1.RollingOutCondition, clusterv1.RemediatingCondition, clusterv1.MachineUpdatingCondition,
}

// describesGreen has the real clusterctl describe the cluster: it has the control plane, its machines and the workers, no condition is
// unknown, and none is false that should be true.
func (s *scenario) describesGreen() {
	s.t.Helper()

	text := s.describes()

	for _, object := range []string{"Cluster /c", "SimCluster /c", "TalosControlPlane /cp", "MachineDeployment /workers", "Machine /cp-", "TalosConfig /cp-", "Machine /workers-"} {
		kind, name, _ := strings.Cut(object, " ")
		s.Expect(text).To(MatchRegexp(kind + " " + s.namespace + name + `.* True `))
	}

	for line := range strings.Lines(s.describes("--show-conditions", "all")) {
		if bad := status.FindStringSubmatch(line); bad != nil {
			s.Expect(bad[2]).NotTo(Equal("Unknown"), text)
			s.Expect(wanted).To(ContainElement(bad[1]), "%s\n%s", line, text)
		}
	}
}

// status is a condition, and what it is if it is not true.
var status = regexp.MustCompile(`(\w+):?\s+(False|Unknown)\b`)

func (s *scenario) describes(arguments ...string) string {
	s.t.Helper()

	program, err := tools.Path(s.ctx, tools.Clusterctl)
	s.Expect(err).NotTo(HaveOccurred())

	home := s.t.TempDir()
	arguments = append([]string{
		"describe", "cluster", "c", "--namespace", s.namespace, "--kubeconfig", s.KubeconfigPath(), "--grouping=false", "--color=false", "--echo",
	}, arguments...)
	command := exec.CommandContext(s.ctx, program, arguments...)
	command.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "CLUSTERCTL_DISABLE_VERSIONCHECK=true")

	output, err := command.Output()
	s.Expect(err).NotTo(HaveOccurred())
	s.t.Logf("clusterctl %s\n%s", strings.Join(arguments, " "), output)

	return string(output)
}
