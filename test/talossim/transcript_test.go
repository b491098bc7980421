// SPDX-License-Identifier: Apache-2.0

package talossim_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/role"

	"github.com/maesh-dev/ichor/test/talossim"
)

const transcript = `cp1: power on
cp1: boots v1.14.1
cp1: Bootstrap by os:admin: OK
w1: power on
w1: boots v1.14.1
w1: ApplyConfiguration mode=NO_REBOOT changes=[HostnameConfig.auto +HostnameConfig.hostname] by os:admin: OK
w1: Reboot by os:reader: PermissionDenied
w1: ImageService/Pull image=ghcr.io/siderolabs/installer:v1.14.2 by os:admin: OK
w1: installs v1.14.2 beside what runs
w1: LifecycleService/Upgrade image=ghcr.io/siderolabs/installer:v1.14.2 exit=0 by os:admin: OK
w1: faults: BootFails
w1: Reboot mode=DEFAULT by os:admin: OK
w1: does not boot v1.14.2
w1: goes back to the system before
w1: boots v1.14.1
w1: no faults
w1: Reset mode=ALL wipes=STATE by os:admin: OK
w1: boots v1.14.1 into maintenance mode
w1: power off
`

// TestTranscript has the same scenario give the same text, without what differs from run to run, and without secrets.
func TestTranscript(t *testing.T) {
	for run := range 2 {
		s := newSubject(t, workerBehind)
		_, err := apply(s, s.as(role.Admin), machine.ApplyConfigurationRequest_NO_REBOOT, s.config(machinetype.TypeWorker, hostnamePatch))
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(s.as(role.Reader).Reboot(s.ctx)).NotTo(Succeed())
		pullAndUpgrade(s, newer114)
		s.node.SetFaults(talossim.Faults{BootFails: ":v1.14.2"})
		reboot(s)
		s.node.SetFaults(talossim.Faults{})
		s.node.SetUserData(nil)
		s.Expect(reset(s, &machine.ResetRequest{Reboot: true, SystemPartitionsToWipe: wiping("STATE")})).To(Succeed())
		inMaintenance(s)
		s.node.PowerOff()

		if diff := cmp.Diff(transcript, s.world.Transcript()); diff != "" {
			t.Errorf("run %d: transcript (-want +got):\n%s", run, diff)
		}
		full := s.world.FullTranscript()
		s.Expect(full).To(ContainSubstring("w1: Read by os:admin: OK"))
		for _, secret := range []string{
			s.cluster.Bundle().TrustdInfo.Token, s.cluster.Bundle().Secrets.BootstrapToken, string(s.cluster.Bundle().Certs.OS.Key),
		} {
			s.Expect(secret).NotTo(BeEmpty())
			s.Expect(full).NotTo(ContainSubstring(secret))
		}
		for _, n := range s.world.Nodes() {
			s.Expect(strings.Contains(full, n.Address())).To(BeFalse(), "no addresses")
		}
	}
}
