// SPDX-License-Identifier: Apache-2.0

package loopback_test

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/maesh-dev/ichor/test/loopback"
)

func reservations(t *testing.T) *loopback.Reservations {
	t.Helper()

	r := &loopback.Reservations{}
	t.Cleanup(func() {
		if err := r.Release(); err != nil {
			t.Error(err)
		}
	})

	return r
}

// No two worlds have one address, not even of one process, until it is given back.
func TestHold(t *testing.T) {
	g, mine, yours := NewWithT(t), reservations(t), reservations(t)

	address, err := mine.Address(50000)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(yours.Hold(address)).To(MatchError(ContainSubstring("reserved already")))
	g.Expect(yours.Free(address)).To(Succeed(), "it is not theirs")
	g.Expect(yours.Hold(address)).NotTo(Succeed())
	g.Expect(mine.Free(address)).To(Succeed())
	g.Expect(yours.Hold(address)).To(Succeed())
	g.Expect(mine.Hold(address)).NotTo(Succeed())
	g.Expect(yours.Release()).To(Succeed())
	g.Expect(mine.Hold(address)).To(Succeed())
}

// All ports must be free, not the first alone.
func TestAddress(t *testing.T) {
	g, r := NewWithT(t), reservations(t)

	everywhere, err := net.Listen("tcp", "0.0.0.0:0") //nolint:gosec // it has to be in the way on all addresses
	g.Expect(err).NotTo(HaveOccurred())

	defer everywhere.Close() //nolint:errcheck // nothing is sent

	_, text, err := net.SplitHostPort(everywhere.Addr().String())
	g.Expect(err).NotTo(HaveOccurred())

	taken, err := strconv.Atoi(text)
	g.Expect(err).NotTo(HaveOccurred())

	port, err := r.Port()
	g.Expect(err).NotTo(HaveOccurred())

	address, err := r.Address(port)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(net.ParseIP(address).IsLoopback()).To(BeTrue())

	_, err = r.Address(port, taken)
	g.Expect(err).To(MatchError(ContainSubstring("takes them from all")))
}

// Ports differ, and one that is waited for is got when it is given back.
func TestPort(t *testing.T) {
	g, mine, yours := NewWithT(t), reservations(t), reservations(t)
	seen := map[int]bool{}

	for range 50 {
		for _, r := range []*loopback.Reservations{mine, yours} {
			port, err := r.Port()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(seen).NotTo(HaveKey(port))
			seen[port] = true
		}
	}

	port, err := mine.Port()
	g.Expect(err).NotTo(HaveOccurred())

	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()

	_, err = loopback.WaitForPort(ctx, port)
	g.Expect(err).To(MatchError(ContainSubstring("another process has it")))
	g.Expect(mine.Release()).To(Succeed())

	release, err := loopback.WaitForPort(t.Context(), port)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(release()).To(Succeed())
}
