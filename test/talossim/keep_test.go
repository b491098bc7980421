// SPDX-License-Identifier: Apache-2.0

package talossim_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/role"

	"github.com/maesh-dev/ichor/test/talossim"
)

// TestKeep ends a world and goes on with another one on the same directory: machines are what they were, where they were, and have booted
// once more if they were on.
func TestKeep(t *testing.T) {
	t.Parallel()

	options := talossim.Options{Keep: true, Dir: t.TempDir()}
	s := &subject{WithT: NewWithT(t), ctx: t.Context(), world: talossim.ForTest(t, options), cluster: clusterOf(t, "v1.14")}
	config := s.config(machinetype.TypeControlPlane)

	on := s.start(talossim.NodeOptions{Name: "on", ProviderID: "p://on", Image: image114}, config)
	s.Expect(s.client(on, role.Admin).Bootstrap(s.ctx, &machine.BootstrapRequest{})).To(Succeed())
	s.Eventually(func() bool { return s.voter(on) }, wait, "5ms").Should(BeTrue())

	_, err := s.client(on, role.Admin).UpgradeWithOptions(s.ctx, client.WithUpgradeImage(newer114))
	s.Expect(err).NotTo(HaveOccurred())
	s.Eventually(on.Version, wait, "5ms").Should(Equal("v1.14.2"))

	off := s.start(talossim.NodeOptions{Name: "off", ProviderID: "p://off"}, config)
	off.PowerOff()

	gone := s.start(talossim.NodeOptions{Name: "gone", ProviderID: "p://gone"}, config)
	s.Expect(gone.Destroy()).To(Succeed())

	boots, boot := on.Boots(), on.BootID()
	s.Expect(s.world.Close()).To(Succeed())

	after := talossim.ForTest(t, options)
	restore := func(name, id string) *talossim.Node {
		n, err := after.Restore(s.ctx, name, id)
		s.Expect(err).NotTo(HaveOccurred())

		return n
	}

	back := restore("on", "p://on")
	s.Expect(back.On()).To(BeTrue())
	s.Expect(back.Address()).To(Equal(on.Address()))
	s.Expect(back.Version()).To(Equal("v1.14.2"))
	s.Expect(back.BootID()).NotTo(Or(BeEmpty(), Equal(boot)))
	s.Expect(back.Boots()).To(Equal(boots + 1))
	s.Expect(string(back.Config()) == string(config)).To(BeTrue(), "the configuration is that of before")

	s.Expect(restore("off", "p://off").On()).To(BeFalse())
	s.Expect(restore("gone", "p://gone")).To(BeNil())

	_, err = after.Restore(s.ctx, "on", "p://on")
	s.Expect(err).To(MatchError(ContainSubstring("has the machine already")))

	// A new machine of a name that was there before begins with an empty disk, and is not the one of before.
	third := talossim.ForTest(t, options)
	another, err := third.Restore(s.ctx, "on", "p://another")
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(another).To(BeNil())

	_, err = third.NewNode(talossim.NodeOptions{Name: "on", ProviderID: "p://another"})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(filepath.Join(options.Dir, "on")).NotTo(BeADirectory())

	// What is half written is told, and not taken for nothing.
	s.Expect(os.WriteFile(filepath.Join(options.Dir, "off", "machine.json"), []byte("{"), 0o600)).To(Succeed())
	_, err = third.Restore(s.ctx, "off", "p://off")
	s.Expect(err).To(MatchError(ContainSubstring("machine off: machine.json:")))
}
