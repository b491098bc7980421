// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/maesh-dev/ichor/test/builder"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	"github.com/maesh-dev/ichor/test/scenario"
)

func TestMyScenario(t *testing.T) {
	s := suite.New(t) // a namespace of its own, and a watch over the invariants
	t.Parallel()

	var machines []clusterv1.Machine

	s.Step("create the cluster", func() {
		s.Create(
			builder.Cluster(scenario.Cluster).Light(), // without Light: real etcd members and API servers
			builder.ControlPlaneMachine(scenario.Cluster, "cp1"),
			builder.ControlPlaneMachine(scenario.Cluster, "cp2").Sim(infrav1.SimMachineSpec{Image: "ghcr.io/siderolabs/installer:v1.14.0"}),
			builder.Workers(scenario.Cluster, "workers", 2), // a MachineDeployment
		)
		machines = s.Machines(4) // waits until all have an address
	})
	s.Step("bootstrap", func() {
		s.Bootstrap(machines) // with the talosconfig that Ichor keeps
		s.Voters(machines, 2)
	})
	s.Step("break cp2 for a while", func() {
		cp2 := s.Node("cp2") // the simulated node behind a SimMachine: all that test/talossim can do
		object := &infrav1.SimMachine{}
		s.Patch(object, "cp2", func() { object.Spec.Faults.Unreachable = true }) // as kubectl does it
		s.Eventually(func() bool { return cp2.Faults().Unreachable }).Should(BeTrue())
		s.Patch(object, "cp2", func() { object.Spec.Faults.Unreachable = false })
		s.Eventually(func() bool { return cp2.Faults().Unreachable }).Should(BeFalse())
	})
	s.Steady()         // nothing is written any more
	s.Golden("readme") // the steps, and what was asked of the nodes, are those of testdata/readme.golden
	s.DeleteCluster()  // and nothing is left of it
}

// The scenarios of test/README.md are those that run.
func TestReadme(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "README.md"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	for file, name := range map[string]string{"readme_test.go": "TestMyScenario", "outage_test.go": "TestOutage"} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			own, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())

			_, function, found := strings.Cut(string(own), "\nfunc "+name)
			g.Expect(found).To(BeTrue())

			body, _, found := strings.Cut(function, "\n}\n")
			g.Expect(found).To(BeTrue())
			g.Expect(string(page)).To(ContainSubstring("```go\nfunc " + name + body + "\n}\n```\n"))
		})
	}
}
