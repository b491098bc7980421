// SPDX-License-Identifier: Apache-2.0

package talossim_test

import (
	"regexp"
	"runtime"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/role"

	"github.com/maesh-dev/ichor/test/talossim"
)

// ofNodes finds goroutines that a world or a server of its nodes started.
var ofNodes = regexp.MustCompile(`test/talossim\.\(|grpc\.\(\*Server\)`)

// leftovers are the goroutines of nodes that run.
func leftovers() []string {
	buffer := make([]byte, 1<<20)
	for n := len(buffer); n == len(buffer); {
		buffer = make([]byte, 2*len(buffer))
		n = runtime.Stack(buffer, true)
		buffer = buffer[:min(n+1, len(buffer))]
	}
	var found []string
	for stack := range strings.SplitSeq(string(buffer), "\n\n") {
		if ofNodes.MatchString(stack) {
			found = append(found, stack)
		}
	}
	return found
}

// TestNothingIsLeft ends a world in the middle of everything: open streams, calls that were passed on, a node that does not
// answer, an upgrade that goes on, a configuration that is tried.
func TestNothingIsLeft(t *testing.T) {
	s := newSubject(t, subjectOptions{worker: true, controlPlanes: 3})
	events(s, client.WithTailEvents(-1))
	c, ctx := throughControlPlane(s, role.Admin)
	_, err := c.Version(ctx)
	s.Expect(err).NotTo(HaveOccurred())
	s.nodes[1].SetFaults(talossim.Faults{BlackHole: true})
	s.nodes[2].SetFaults(talossim.Faults{EtcdNeverStarts: true})
	s.Expect(s.as(role.Operator).Reboot(s.ctx)).To(Succeed())
	s.Expect(leftovers()).NotTo(BeEmpty(), "the test looks for the wrong thing")
	s.Expect(s.world.Close()).To(Succeed())
	s.Eventually(leftovers, wait, "20ms").Should(BeEmpty())
}
