// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
)

const sectorSize = 512

// storageResources are the disks and partitions of a machine, and the volumes of one that has a configuration.
func (b *boot) storageResources() []resource.Resource {
	n := b.node
	var volumes []volume
	if c := b.config(); c != nil {
		volumes = n.provision(c)
	}
	var all []resource.Resource
	for _, disk := range n.disks() {
		r := block.NewDisk(block.NamespaceName, disk.Name)
		spec := r.TypedSpec()
		spec.DevPath = "/dev/" + disk.Name
		spec.SetSize(disk.Size)
		spec.IOSize, spec.SectorSize = sectorSize, sectorSize
		spec.Model, spec.Serial, spec.Transport, spec.Rotational = disk.Model, disk.Serial, disk.Transport, disk.Rotational
		all = append(all, r, discoveredDisk(disk))
	}
	n.mu.Lock()
	installed, partitions := n.disk.installed, append([]partition(nil), n.disk.partitions...)
	n.mu.Unlock()
	if installed {
		system := block.NewSystemDisk(block.NamespaceName, block.SystemDiskID)
		system.TypedSpec().DiskID, system.TypedSpec().DevPath = n.disks()[0].Name, "/dev/"+n.disks()[0].Name
		all = append(all, system)
	}
	for _, p := range partitions {
		all = append(all, p.discovered())
	}
	for _, v := range volumes {
		all = append(all, v.status())
		if v.target != "" && v.failed == nil && v.id != n.Faults().NotMounted {
			all = append(all, v.mounted())
		}
	}
	return all
}

func discoveredDisk(disk Disk) resource.Resource {
	r := block.NewDiscoveredVolume(block.NamespaceName, disk.Name)
	spec := r.TypedSpec()
	spec.DevPath, spec.Type = "/dev/"+disk.Name, "disk"
	spec.SetSize(disk.Size)
	spec.Name, spec.SectorSize, spec.IOSize = "gpt", sectorSize, sectorSize
	return r
}

func (p partition) discovered() resource.Resource {
	r := block.NewDiscoveredVolume(block.NamespaceName, p.device())
	spec := r.TypedSpec()
	spec.DevPath, spec.Type = "/dev/"+p.device(), "partition"
	spec.SetSize(p.size)
	spec.Parent, spec.ParentDevPath = p.disk, "/dev/"+p.disk
	spec.PartitionLabel, spec.PartitionIndex, spec.PartitionUUID = p.volume, uint(p.index), p.uuid
	spec.SectorSize, spec.IOSize = sectorSize, sectorSize
	switch {
	case p.encrypted:
		spec.Name = "luks"
	case p.filesystem != block.FilesystemTypeNone:
		spec.Name = p.filesystem.String()
	}
	return r
}

// encryption is what an encrypted volume is encrypted with.
func (p partition) encryption() block.EncryptionProviderType {
	if p.encrypted {
		return block.EncryptionProviderLUKS2
	}
	return block.EncryptionProviderNone
}

// mountDevice is what is mounted: of an encrypted volume, the device that shows its plain content.
func (p partition) mountDevice() string {
	if p.encrypted {
		return "/dev/mapper/luks2-" + p.volume
	}
	return "/dev/" + p.device()
}

func (v volume) status() resource.Resource {
	r := block.NewVolumeStatus(block.NamespaceName, v.id)
	spec := r.TypedSpec()
	spec.Type, spec.Phase = v.kind, block.VolumePhaseReady
	spec.MountSpec.TargetPath = v.target
	if v.failed != nil {
		spec.Phase, spec.PreFailPhase, spec.ErrorMessage = block.VolumePhaseFailed, block.VolumePhaseWaiting, v.failed.Error()
		return r
	}
	if v.on == nil {
		return r
	}
	spec.Location, spec.MountLocation, spec.ParentLocation = "/dev/"+v.on.device(), v.on.mountDevice(), "/dev/"+v.on.disk
	spec.PartitionIndex, spec.PartitionUUID, spec.UUID = v.on.index, v.on.uuid, v.on.uuid
	spec.SetSize(v.on.size)
	spec.Filesystem, spec.EncryptionProvider = v.on.filesystem, v.on.encryption()
	return r
}

func (v volume) mounted() resource.Resource {
	r := block.NewMountStatus(block.NamespaceName, v.id)
	spec := r.TypedSpec()
	spec.Spec.VolumeID, spec.Target = v.id, v.target
	if v.on != nil {
		spec.Source, spec.Filesystem, spec.EncryptionProvider = v.on.mountDevice(), v.on.filesystem, v.on.encryption()
	}
	return r
}
