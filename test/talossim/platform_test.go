// SPDX-License-Identifier: Apache-2.0

package talossim_test

import (
	"net"
	"testing"

	. "github.com/onsi/gomega"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"

	"github.com/maesh-dev/ichor/test/talossim"
)

// A machine that is destroyed is off for good, and nobody is at its address any more.
func TestDestroy(t *testing.T) {
	g := NewWithT(t)
	world := talossim.ForTest(t, talossim.Options{})

	config, err := clusterOf(t, "v1.14").Config(machinetype.TypeControlPlane)
	g.Expect(err).NotTo(HaveOccurred())

	n, err := world.Start(t.Context(), talossim.NodeOptions{Name: "cp1"}, config)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(n.On()).To(BeTrue())
	g.Expect(world.ControlPlanes()).To(ConsistOf(n.Address()))

	g.Expect(n.Destroy()).To(Succeed())
	g.Expect(n.On()).To(BeFalse())
	g.Expect(n.PowerOn(t.Context())).To(MatchError("node cp1: was destroyed"))
	g.Expect(n.On()).To(BeFalse())
	g.Expect(world.Nodes()).To(BeEmpty())
	g.Expect(world.ControlPlanes()).To(BeEmpty())

	_, err = net.Dial("tcp", net.JoinHostPort(n.Address(), "50000"))
	g.Expect(err).To(HaveOccurred())
	g.Expect(n.Destroy()).To(Succeed(), "a second time")

	again, err := world.Start(t.Context(), talossim.NodeOptions{Name: "cp1"}, config)
	g.Expect(err).NotTo(HaveOccurred(), "another of the same name")
	g.Expect(again.BootID()).NotTo(BeEmpty())
}

// A machine that does not boot says so until one boot succeeds.
func TestBootError(t *testing.T) {
	g := NewWithT(t)
	world := talossim.ForTest(t, talossim.Options{})

	n, err := world.NewNode(talossim.NodeOptions{Name: "cp1", Image: "ghcr.io/siderolabs/installer:v1.14.0"})
	g.Expect(err).NotTo(HaveOccurred())
	n.SetFaults(talossim.Faults{BootFails: ":v1.14.0"})
	g.Expect(n.PowerOn(t.Context())).NotTo(Succeed())
	g.Expect(n.BootError()).To(MatchError(ContainSubstring("does not boot")))
	g.Expect(n.On()).To(BeTrue(), "it has power all the same")

	n.SetFaults(talossim.Faults{})
	g.Expect(n.Crash(t.Context())).To(Succeed())
	g.Expect(n.BootError()).NotTo(HaveOccurred())
}

// An endpoint comes back where it was.
func TestEndpointAt(t *testing.T) {
	g := NewWithT(t)
	world := talossim.ForTest(t, talossim.Options{})

	first, err := world.NewEndpoint("6443")
	g.Expect(err).NotTo(HaveOccurred())

	address, port := first.Address()
	g.Expect(first.URL()).To(Equal("https://" + net.JoinHostPort(address, port)))

	_, err = world.NewEndpointAt(address, port)
	g.Expect(err).To(MatchError(ContainSubstring("reserved already")))
	g.Expect(first.Close()).To(Succeed())

	second, err := world.NewEndpointAt(address, port)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(second.Close()).To(Succeed())

	for _, foreign := range []string{"192.0.2.1", "api.example.com", ""} {
		_, err = world.NewEndpointAt(foreign, port)
		g.Expect(err).To(MatchError(ContainSubstring("is no loopback address")), foreign)
	}
}
