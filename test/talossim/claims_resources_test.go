// SPDX-License-Identifier: Apache-2.0

package talossim_test

import (
	"testing"

	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	. "github.com/onsi/gomega"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/api/storage"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	configres "github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/cri"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	runtimeres "github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/siderolabs/talos/pkg/machinery/resources/secrets"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"

	"github.com/maesh-dev/ichor/test/talossim"
)

const (
	sourceStaticPods = "Talos source: internal/app/machined/pkg/controllers/k8s, ControlPlaneStaticPodController"
	sourceVolumes    = "Talos source: internal/app/machined/pkg/controllers/block, VolumeManagerController; documentation: user volumes"
	sourceWipe       = "Talos source: internal/app/storaged, BlockDeviceWipe"
)

const (
	volumePatch = "apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: longhorn\n" +
		"provisioning: {diskSelector: {match: \"!system_disk && disk.transport == 'nvme'\"}, minSize: 10GiB}\n"
	hugePatch      = "apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: huge\nprovisioning: {diskSelector: {match: \"!system_disk\"}, minSize: 10TiB}\n"
	schedulerPatch = "apiVersion: v1alpha1\nkind: KubeSchedulerConfig\nextraArgs: {v: \"4\"}\n"
)

// twoDisks is a machine with a second disk.
var twoDisks = []talossim.Disk{
	{Name: "vda", Size: 50 << 30, Transport: "virtio"},
	{Name: "nvme0n1", Size: 100 << 30, Transport: "nvme", Serial: "data-1"},
}

func volumeStatus(s *subject, id string) *block.VolumeStatusSpec {
	volume, err := safe.StateGetByID[*block.VolumeStatus](s.ctx, s.as(role.Reader).COSI, id)
	s.Expect(err).NotTo(HaveOccurred())
	return volume.TypedSpec()
}

func podVersion(s *subject, id string) string {
	static, err := safe.StateGetByID[*k8s.StaticPod](s.ctx, s.as(role.Reader).COSI, id)
	s.Expect(err).NotTo(HaveOccurred())
	annotations := static.TypedSpec().Pod["metadata"].(map[string]any)["annotations"].(map[string]any) //nolint:forcetypeassert // a pod has both
	return annotations["talos.dev/config-version"].(string)                                            //nolint:forcetypeassert // as above
}

func schedulerVersion(s *subject, id string) string {
	config, err := safe.StateGetByID[*k8s.SchedulerConfig](s.ctx, s.as(role.Reader).COSI, id)
	s.Expect(err).NotTo(HaveOccurred())
	return config.Metadata().Version().String()
}

var resourceClaims = []claim{
	{
		says: "name, type and addresses are for readers", source: sourceResources, harmless: true,
		check: func(_ *testing.T, s *subject) {
			c := s.as(role.Reader).COSI
			nodename, err := safe.StateGetByID[*k8s.Nodename](s.ctx, c, k8s.NodenameID)
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(nodename.TypedSpec().Nodename).NotTo(BeEmpty())
			machineType, err := safe.StateGetByID[*configres.MachineType](s.ctx, c, configres.MachineTypeID)
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(machineType.MachineType()).To(Equal(machinetype.TypeControlPlane))
			addresses, err := safe.StateGetByID[*network.NodeAddress](s.ctx, c, network.NodeAddressCurrentID)
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(addresses.TypedSpec().Addresses).NotTo(BeEmpty())
			cache, err := safe.StateGetByID[*cri.ImageCacheConfig](s.ctx, c, cri.ImageCacheConfigID)
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(cache.TypedSpec().Status).NotTo(Equal(cri.ImageCacheStatusUnknown))
		},
	},
	{
		says: "secrets and what holds them are for administrators", source: sourceResources, harmless: true,
		check: func(_ *testing.T, s *subject) {
			reader, admin := s.as(role.Reader).COSI, s.as(role.Admin).COSI
			_, err := safe.StateGetByID[*secrets.OSRoot](s.ctx, reader, secrets.OSRootID)
			s.Expect(err).To(code(codes.PermissionDenied))
			_, err = safe.StateGetByID[*k8s.KubeletSpec](s.ctx, reader, k8s.KubeletID)
			s.Expect(err).To(code(codes.PermissionDenied))
			_, err = safe.StateListAll[*k8s.APIServerConfig](s.ctx, reader)
			s.Expect(err).To(code(codes.PermissionDenied))
			root, err := safe.StateGetByID[*secrets.OSRoot](s.ctx, admin, secrets.OSRootID)
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(root.TypedSpec().IssuingCA.Key).NotTo(BeEmpty())
			kubelet, err := safe.StateGetByID[*k8s.KubeletSpec](s.ctx, admin, k8s.KubeletID)
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(kubelet.TypedSpec().Image).NotTo(BeEmpty())
		},
	},
	{
		says: "nobody writes", source: "Talos source: internal/app/resources, access policy", harmless: true,
		check: func(_ *testing.T, s *subject) {
			err := s.as(role.Admin).COSI.Destroy(s.ctx, runtimeres.NewMachineStatus().Metadata())
			// The client takes a refusal for another owner's resource.
			s.Expect(state.IsOwnerConflictError(err)).To(BeTrue(), "%v", err)
		},
	},
	{
		says: "the kinds can be listed", source: sourceClient, harmless: true,
		check: func(_ *testing.T, s *subject) {
			kinds, err := safe.StateListAll[*meta.ResourceDefinition](s.ctx, s.as(role.Reader).COSI)
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(kinds.Len()).To(BeNumerically(">", 30))
		},
	},
	{
		says: "kinds that came with a later version are not there", source: "machinery 1.13.0 and 1.14.1: pkg/machinery/resources",
		options: subjectOptions{image: image113},
		check: func(_ *testing.T, s *subject) {
			_, err := safe.StateGetByID[*k8s.KubeletStatus](s.ctx, s.as(role.Reader).COSI, k8s.KubeletID)
			s.Expect(state.IsNotFoundError(err)).To(BeTrue(), "%v", err)
		},
	},
	{
		says: "a control plane's static pods run once etcd does, with the version of their final configuration", source: sourceStaticPods,
		options: subjectOptions{bare: true},
		check: func(_ *testing.T, s *subject) {
			ready := func() int {
				list, err := safe.StateListAll[*k8s.StaticPodStatus](s.ctx, s.as(role.Reader).COSI)
				s.Expect(err).NotTo(HaveOccurred())
				return list.Len()
			}
			s.Expect(ready()).To(BeZero())
			s.Expect(s.as(role.Admin).Bootstrap(s.ctx, &machine.BootstrapRequest{})).To(Succeed())
			s.Eventually(ready, wait, "5ms").Should(Equal(3))
			s.Expect(podVersion(s, k8s.SchedulerID)).To(Equal(schedulerVersion(s, k8s.FinalSchedulerConfigID)))
		},
	},
	{
		says: "before 1.14 a static pod has the version of its configuration itself", source: sourceStaticPods,
		options: subjectOptions{image: image113},
		check: func(_ *testing.T, s *subject) {
			s.Expect(podVersion(s, k8s.SchedulerID)).To(Equal(schedulerVersion(s, k8s.SchedulerConfigID)))
			_, err := safe.StateGetByID[*k8s.SchedulerConfig](s.ctx, s.as(role.Reader).COSI, k8s.FinalSchedulerConfigID)
			s.Expect(state.IsNotFoundError(err)).To(BeTrue(), "%v", err)
		},
	},
	{
		says: "a change of a component's configuration is a new version, and of no other component's", source: sourceStaticPods,
		check: func(_ *testing.T, s *subject) {
			before, manager := podVersion(s, k8s.SchedulerID), podVersion(s, k8s.ControllerManagerID)
			_, err := apply(s, s.as(role.Admin), machine.ApplyConfigurationRequest_NO_REBOOT, s.config(machinetype.TypeControlPlane, schedulerPatch))
			s.Expect(err).NotTo(HaveOccurred())
			s.Eventually(func() string { return podVersion(s, k8s.SchedulerID) }, wait, "5ms").ShouldNot(Equal(before))
			s.Expect(podVersion(s, k8s.SchedulerID)).To(Equal(schedulerVersion(s, k8s.FinalSchedulerConfigID)))
			s.Expect(podVersion(s, k8s.ControllerManagerID)).To(Equal(manager))
		},
	},
	{
		says: "disks, partitions and the system disk are for readers", source: sourceResources, harmless: true,
		check: func(_ *testing.T, s *subject) {
			c := s.as(role.Reader).COSI
			disks, err := safe.StateListAll[*block.Disk](s.ctx, c)
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(disks.Len()).To(BeNumerically(">", 0))
			system, err := safe.StateGetByID[*block.SystemDisk](s.ctx, c, block.SystemDiskID)
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(system.TypedSpec().DevPath).To(HavePrefix("/dev/"))
			s.Expect(volumeStatus(s, "EPHEMERAL").Phase).To(Equal(block.VolumePhaseReady))
		},
	},
	{
		says: "a user volume is made on the first disk that is selected, and mounted", source: sourceVolumes,
		options: subjectOptions{disks: twoDisks},
		check: func(_ *testing.T, s *subject) {
			_, err := apply(s, s.as(role.Admin), machine.ApplyConfigurationRequest_NO_REBOOT, s.config(machinetype.TypeControlPlane, volumePatch))
			s.Expect(err).NotTo(HaveOccurred())
			volume := volumeStatus(s, "u-longhorn")
			s.Expect(volume.Phase).To(Equal(block.VolumePhaseReady))
			s.Expect(volume.ParentLocation).To(Equal("/dev/nvme0n1"))
			s.Expect(volume.Size).To(BeNumerically("==", 100<<30))
			mount, err := safe.StateGetByID[*block.MountStatus](s.ctx, s.as(role.Reader).COSI, "u-longhorn")
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(mount.TypedSpec().Target).To(Equal("/var/mnt/longhorn"))

			before := s.node.BootID()
			s.Expect(s.as(role.Admin).Reboot(s.ctx)).To(Succeed())
			rebooted(s, before)
			s.Expect(volumeStatus(s, "u-longhorn").PartitionUUID).To(Equal(volume.PartitionUUID), "data outlives a reboot")
		},
	},
	{
		says: "a volume that no disk has room for fails, and says so", source: sourceVolumes,
		options: subjectOptions{disks: twoDisks},
		check: func(_ *testing.T, s *subject) {
			_, err := apply(s, s.as(role.Admin), machine.ApplyConfigurationRequest_NO_REBOOT, s.config(machinetype.TypeControlPlane, hugePatch))
			s.Expect(err).NotTo(HaveOccurred())
			volume := volumeStatus(s, "u-huge")
			s.Expect(volume.Phase).To(Equal(block.VolumePhaseFailed))
			s.Expect(volume.ErrorMessage).NotTo(BeEmpty())
		},
	},
	{
		says: "a device that a volume is on is not wiped, and one whose volume is gone is", source: sourceWipe,
		options: subjectOptions{disks: twoDisks},
		check: func(_ *testing.T, s *subject) {
			c := s.as(role.Admin)
			_, err := apply(s, c, machine.ApplyConfigurationRequest_NO_REBOOT, s.config(machinetype.TypeControlPlane, volumePatch))
			s.Expect(err).NotTo(HaveOccurred())
			wipe := func(device string) error {
				return c.BlockDeviceWipe(s.ctx, &storage.BlockDeviceWipeRequest{
					Devices: []*storage.BlockDeviceWipeDescriptor{{Device: device, DropPartition: true}},
				})
			}
			s.Expect(wipe("nvme0n1p1")).To(code(codes.FailedPrecondition))
			s.Expect(wipe("sdz1")).To(code(codes.NotFound))
			_, err = apply(s, c, machine.ApplyConfigurationRequest_NO_REBOOT, s.config(machinetype.TypeControlPlane))
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(wipe("nvme0n1p1")).To(Succeed())
			s.Expect(wipe("nvme0n1p1")).To(code(codes.NotFound))
		},
	},
	{
		says: "a sysctl takes effect at once", source: sourceApply,
		check: func(_ *testing.T, s *subject) {
			config := append(s.config(machinetype.TypeControlPlane), []byte("---\n"+modernPatch)...)
			_, err := apply(s, s.as(role.Admin), machine.ApplyConfigurationRequest_NO_REBOOT, config)
			s.Expect(err).NotTo(HaveOccurred())
			parameter, err := safe.StateGetByID[*runtimeres.KernelParamStatus](s.ctx, s.as(role.Reader).COSI, "proc.sys.net.ipv4.ip_forward")
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(parameter.TypedSpec().Current).To(Equal("1"))
		},
	},
}
