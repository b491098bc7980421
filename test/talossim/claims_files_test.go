// SPDX-License-Identifier: Apache-2.0

package talossim_test

import (
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	. "github.com/onsi/gomega"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	"github.com/siderolabs/talos/pkg/machinery/role"

	"github.com/maesh-dev/ichor/test/talossim"
)

var fileClaims = []claim{
	{
		says: "the directory of etcd's data is there and empty until etcd has started", source: sourceFiles, options: subjectOptions{bare: true},
		check: func(_ *testing.T, s *subject) {
			s.Expect(files(s, s.node, constants.EtcdDataPath)).To(Equal([]string{"."}))
			s.Expect(s.as(role.Admin).Bootstrap(s.ctx, &machine.BootstrapRequest{})).To(Succeed())
			s.Eventually(func() ([]string, error) { return files(s, s.node, constants.EtcdDataPath+"/") }, wait, "5ms").Should(Equal([]string{".", "member"}))
		},
	},
	{
		says: "a directory is named before what is in it, and not what is below", source: sourceFiles, harmless: true,
		check: func(_ *testing.T, s *subject) {
			s.Expect(files(s, s.node, "/var/lib")).To(ContainElement("etcd"))
			s.Expect(files(s, s.node, "/var/lib")).NotTo(ContainElement(ContainSubstring("/")))
			names, _ := files(s, s.node, "/var/lib")
			s.Expect(names[0]).To(Equal("."))
		},
	},
	{
		says: "what does not exist is an error", source: sourceFiles, options: workerBehind,
		check: func(_ *testing.T, s *subject) {
			_, err := files(s, s.node, constants.EtcdDataPath)
			s.Expect(err).To(HaveOccurred())
		},
	},
	{
		says: "a directory on a volume that is not mounted looks empty, and the mount is missing", source: sourceFiles,
		options: subjectOptions{faults: talossim.Faults{NotMounted: constants.EphemeralPartitionLabel}},
		check: func(_ *testing.T, s *subject) {
			mounted := func(id string) error {
				_, err := safe.StateGetByID[*block.MountStatus](s.ctx, s.as(role.Reader).COSI, id)
				return err
			}
			s.Expect(files(s, s.node, constants.EtcdDataPath)).To(Equal([]string{"."}))
			s.Expect(mounted(constants.EphemeralPartitionLabel)).To(Satisfy(state.IsNotFoundError))
			s.Expect(mounted(constants.EtcdDataVolumeID)).To(Succeed())
		},
	},
}
