// SPDX-License-Identifier: Apache-2.0

package talos_test

import (
	"context"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/talos"
	"github.com/maesh-dev/ichor/test/talossim"
)

// ofClients finds goroutines of connections: those of this package, and of gRPC's clients.
var ofClients = regexp.MustCompile(`internal/talos\.\(|grpc\.\(\*ClientConn\)|grpc\.\(\*addrConn\)|transport\.newHTTP2Client`)

func leftovers() []string {
	buffer := make([]byte, 1<<20)
	for n := len(buffer); n == len(buffer); {
		buffer = make([]byte, 2*len(buffer))
		n = runtime.Stack(buffer, true)
		buffer = buffer[:min(n+1, len(buffer))]
	}

	var found []string

	for stack := range strings.SplitSeq(string(buffer), "\n\n") {
		if ofClients.MatchString(stack) {
			found = append(found, stack)
		}
	}

	return found
}

// TestNothingIsLeft closes a pool in the middle of everything: connections that are used, one to a node that does not answer, one to a machine
// that is gone. It is not parallel, since it looks at all goroutines.
func TestNothingIsLeft(t *testing.T) {
	w := newWorld(t, talos.Options{Timeout: 10 * time.Second})
	w.grow(3)
	w.Expect(leftovers()).NotTo(BeEmpty(), "the test looks for the wrong thing")

	w.nodes[2].SetFaults(talossim.Faults{BlackHole: true})
	_ = w.open().Observe(w.ctx)

	asking, stop := context.WithCancel(w.ctx)
	done := make(chan struct{})

	go func() {
		defer close(done)
		_ = w.open().Observe(asking)
	}()

	stop()
	<-done
	w.pool.Close()
	w.Eventually(leftovers, patience, "20ms").Should(BeEmpty())

	_, err := w.pool.Open(key, talos.Credentials{Bundle: w.cluster.Bundle()})
	w.Expect(err).To(MatchError(talos.ErrStopped))
}

// TestMachinesThatAreGone proves that connections to addresses that no Machine has any more are closed, and those of a cluster that is forgotten.
func TestMachinesThatAreGone(t *testing.T) {
	w := newWorld(t, talos.Options{})
	w.grow(2)
	w.Expect(w.open().Observe(w.ctx)).To(HaveLen(2))
	w.Expect(w.client().Connections()).To(Equal(2))

	w.open(machineOf(w.nodes[0]))
	w.Expect(w.client().Connections()).To(Equal(1))

	client := w.client()
	w.pool.Forget(key)
	w.Expect(client.Connections()).To(BeZero())
	w.Eventually(leftovers, patience, "20ms").Should(BeEmpty())

	node := client.Nodes(talos.Reach{}, w.machines()).Observe(w.ctx)["cp1"]
	w.Expect(node.Err).To(MatchError(talos.ErrStopped), "a client that was forgotten is of no use")
}

func TestConnectionsAreReusedAndReplaced(t *testing.T) {
	t.Parallel()

	// Ours is a little ahead of the node's, whose certificate is valid from the moment on that it is made.
	clock := clocktesting.NewFakePassiveClock(time.Now().Add(4 * time.Minute))
	w := newWorld(t, talos.Options{Clock: clock})
	w.growBare(1)

	first := w.client()
	w.Expect(w.observe(w.nodes[0]).Err).NotTo(HaveOccurred())

	one := first.ConnectionTo(w.nodes[0].Address() + ":50000")
	w.Expect(one).NotTo(BeNil())
	w.Expect(w.observe(w.nodes[0]).Err).NotTo(HaveOccurred())
	w.Expect(first.ConnectionTo(w.nodes[0].Address()+":50000")).To(BeIdenticalTo(one), "it is used again")
	w.Expect(w.client()).To(BeIdenticalTo(first))

	// At half of the certificate's life. The node's clock goes with ours.
	const half = 31 * time.Minute

	clock.SetTime(clock.Now().Add(half))
	w.nodes[0].SetFaults(talossim.Faults{ClockSkew: half})
	w.Expect(w.observe(w.nodes[0]).Err).NotTo(HaveOccurred())
	w.Expect(first.ConnectionTo(w.nodes[0].Address()+":50000")).NotTo(BeIdenticalTo(one), "its certificate is about to expire")
}

// TestRefusedCallsLeaveTheConnection is about a node that answers that a reader may not ask something, as an older Talos does: the connection on
// which it has answered is a good one.
func TestRefusedCallsLeaveTheConnection(t *testing.T) {
	t.Parallel()

	w := newWorld(t, talos.Options{})
	w.growBare(1)
	w.Expect(w.observe(w.nodes[0]).Err).NotTo(HaveOccurred())

	address := w.nodes[0].Address() + ":50000"
	one := w.client().ConnectionTo(address)

	w.nodes[0].FailNext("ServiceList", status.Error(codes.PermissionDenied, "not authorized"))
	w.Expect(w.observe(w.nodes[0]).Gaps).To(ContainElement(ContainSubstring("not authorized")))
	w.Expect(w.client().ConnectionTo(address)).To(BeIdenticalTo(one))

	// Who is not known at all may be on a connection with a certificate that is of no use any more.
	w.nodes[0].FailNext("ServiceList", status.Error(codes.Unauthenticated, "who is it"))
	w.Expect(w.observe(w.nodes[0]).Gaps).To(ContainElement(ContainSubstring("who is it")))
	w.Expect(w.client().ConnectionTo(address)).NotTo(BeIdenticalTo(one))
}

// TestRotation is about another authority: the connections of before are closed, and a node that has not changed over is told.
func TestRotation(t *testing.T) {
	t.Parallel()

	w := newWorld(t, talos.Options{})
	w.growBare(1)

	before := w.client()
	w.Expect(w.observe(w.nodes[0]).Err).NotTo(HaveOccurred())
	w.Expect(before.Connections()).To(Equal(1))

	other, err := simulated["other"]()
	w.Expect(err).NotTo(HaveOccurred())

	after, err := w.pool.Open(key, talos.Credentials{Bundle: other.Bundle()})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(after).NotTo(BeIdenticalTo(before))
	w.Expect(before.Connections()).To(BeZero())
	w.Expect(after.Nodes(talos.Reach{}, w.machines()).Observe(w.ctx)["cp1"].Err).To(MatchError(talos.ErrForeign))

	// The authority of before is accepted still: the node is trusted, and does not know us.
	both, err := w.pool.Open(key, talos.Credentials{Bundle: other.Bundle(), AcceptedCAs: w.cluster.Bundle().Certs.OS.Crt})
	w.Expect(err).NotTo(HaveOccurred())

	refused := both.Nodes(talos.Reach{}, w.machines()).Observe(w.ctx)["cp1"].Err
	w.Expect(refused).To(MatchError(talos.ErrRefused))
	w.Expect(refused.Error()).To(HaveSuffix("it was configured with another"))
}

func TestCredentialsThatCannotBeUsed(t *testing.T) {
	t.Parallel()

	g := NewWithT(t)

	cluster, err := simulated["v1.14"]()
	g.Expect(err).NotTo(HaveOccurred())

	damaged := *cluster.Bundle()
	certs, pair := *damaged.Certs, *damaged.Certs.OS
	damaged.Certs, certs.OS = &certs, &pair
	pair.Key = []byte("SECRET")

	pool := talos.NewPool(talos.Options{})
	defer pool.Close()

	for name, test := range map[string]struct {
		credentials talos.Credentials
		want        string
	}{
		"no bundle":     {talos.Credentials{}, "cluster sim: secrets bundle: certs.os is missing"},
		"empty bundle":  {talos.Credentials{Bundle: secrets.Empty(nil)}, "cluster sim: secrets bundle: certs.os is missing"},
		"damaged key":   {talos.Credentials{Bundle: &damaged}, "cluster sim: client certificate for cluster sim: certs.os.key is not a PEM private key of a kind that Talos reads (RSA, ECDSA, Ed25519)"},
		"accepted none": {talos.Credentials{Bundle: cluster.Bundle(), AcceptedCAs: []byte("x")}, "cluster sim: accepted CAs: there is no PEM certificate in them"},
	} {
		_, err := pool.Open(key, test.credentials)
		g.Expect(err).To(MatchError(test.want), name)
	}
}
