// SPDX-License-Identifier: Apache-2.0

package talos_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/maesh-dev/ichor/internal/talos"
)

// TestWaysLeftOut has a machine have more addresses than are tried, none of which leads anywhere: what is said of it tells so.
func TestWaysLeftOut(t *testing.T) {
	t.Parallel()

	w := newWorld(t, talos.Options{})
	m := talos.Machine{Name: "m", ControlPlane: true}

	for i := range 8 {
		m.Addresses = append(m.Addresses, clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: fmt.Sprintf("127.254.254.%d", i+1)})
	}

	err := w.open(m).Observe(w.ctx)["m"].Err
	w.Expect(err).To(MatchError(talos.ErrUnreachable))
	w.Expect(err).To(MatchError(ContainSubstring("; ways to it that were not tried: 2 (spec.talosAPI.cidrs")))
}
