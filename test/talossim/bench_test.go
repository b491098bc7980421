// SPDX-License-Identifier: Apache-2.0

package talossim_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/role"

	"github.com/maesh-dev/ichor/test/talossim"
)

// BenchmarkStart200 boots one control-plane node and 199 workers, with real certificates and listeners.
func BenchmarkStart200(b *testing.B) {
	g := NewWithT(b)
	cluster, err := talossim.NewCluster("bench", "https://127.0.0.1:6443", "v1.14", "v1.36.0")
	g.Expect(err).NotTo(HaveOccurred())
	controlPlane, err := cluster.Config(machinetype.TypeControlPlane)
	g.Expect(err).NotTo(HaveOccurred())
	worker, err := cluster.Config(machinetype.TypeWorker)
	g.Expect(err).NotTo(HaveOccurred())
	for b.Loop() {
		world, err := talossim.New(talossim.Options{})
		g.Expect(err).NotTo(HaveOccurred())
		for i := range 200 {
			config := worker
			if i == 0 {
				config = controlPlane
			}
			_, err := world.Start(b.Context(), talossim.NodeOptions{Name: fmt.Sprintf("node-%d", i)}, config)
			g.Expect(err).NotTo(HaveOccurred())
		}
		b.StopTimer()
		last := world.Nodes()[199]
		c, err := cluster.Client(b.Context(), last, role.Reader)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = c.Version(b.Context())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.Close()).To(Succeed())
		g.Expect(world.Close()).To(Succeed())
		b.StartTimer()
	}
}
