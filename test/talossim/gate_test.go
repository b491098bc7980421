// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"net"
	"testing"

	. "github.com/onsi/gomega"
)

// A node whose address somebody else listens on says so, and is there once that is over.
func TestTakenAddress(t *testing.T) {
	g := NewWithT(t)
	world := ForTest(t, Options{})
	n, err := world.NewNode(NodeOptions{Name: "n"})
	g.Expect(err).NotTo(HaveOccurred())

	thief, err := net.Listen("tcp", n.gate.address)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(n.PowerOn(t.Context())).To(Succeed())
	g.Expect(n.Failure()).To(MatchError(ContainSubstring("the Talos API cannot listen")))
	g.Expect(thief.Close()).To(Succeed())

	n.SetFaults(Faults{Unreachable: true})
	n.SetFaults(Faults{})
	g.Expect(n.Failure()).NotTo(HaveOccurred())
	conn, err := net.Dial("tcp", n.gate.address)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(conn.Close()).To(Succeed())
}
