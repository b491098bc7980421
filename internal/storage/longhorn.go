// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/version"
)

const (
	// LonghornCreateDiskLabel on a Node makes Longhorn create its disks, where Longhorn's setting create-default-disk-labeled-nodes is
	// true. Source: Longhorn's documentation, "Configuring defaults for nodes and disks".
	LonghornCreateDiskLabel = "node.longhorn.io/create-default-disk"

	// LonghornDisksConfigAnnotation on a Node lists the disks that Longhorn creates, as JSON. Longhorn reads it once.
	LonghornDisksConfigAnnotation = "node.longhorn.io/default-disks-config"

	// LonghornNodeTagsAnnotation on a Node lists the node's tags, as JSON. Longhorn reads it once.
	LonghornNodeTagsAnnotation = "node.longhorn.io/default-node-tags"

	// LonghornDefaultNamespace is where Longhorn runs if a TalosStorage does not say otherwise.
	LonghornDefaultNamespace = "longhorn-system"

	// createFromConfig is the value of the label that makes Longhorn read the annotation.
	createFromConfig = "config"

	longhornName = "longhorn"

	hugePagesSysctl = "vm.nr_hugepages"

	// hugePages are the pages of 2 MiB that the V2 engine's data path wants: 2 GiB. Source: Longhorn's documentation, "V2 data engine".
	hugePages = "1024"
)

// longhornV2Modules are the kernel modules that the V2 engine wants: NVMe over TCP, the user-space drivers for disks, and the block device
// in user space. Source: Longhorn's documentation, "Talos Linux support".
var longhornV2Modules = []string{"nvme_tcp", "vfio_pci", "uio_pci_generic", "ublk_drv"}

// longhornV1 prepares a volume with a file system. It needs no kubelet mount: Longhorn's pods reach /var/mnt through the host's
// namespace, and a mount of the kubelet there is known to hide the volume or to pile up until the disk is full (talos#13053, talos#13069).
func longhornV1(spec *bootstrapv1.TalosStorageSpec) (Preparation, error) {
	document, volumeErr := userVolume(longhornName, spec.Volume)
	mount := path.Join(constants.UserVolumeMountPoint, longhornName)

	disk, diskErr := longhornDiskOf(spec, longhornDisk{Path: mount, DiskType: diskTypeFilesystem})
	if err := errors.Join(volumeErr, diskErr); err != nil {
		return Preparation{}, err
	}

	warnings, err := checkReserved(spec.StorageReserved, document.ProvisioningSpec)
	if err != nil {
		return Preparation{}, err
	}

	return longhornNode(spec, disk, []config.Document{document}, warnings)
}

// longhornV2 prepares a raw block device, and the kernel for the V2 engine.
func longhornV2(spec *bootstrapv1.TalosStorageSpec, contract version.Contract) (Preparation, error) {
	document, volumeErr := rawVolume(longhornName, spec.Volume)
	device := "/dev/disk/by-partlabel/" + constants.RawVolumePrefix + longhornName

	disk, diskErr := longhornDiskOf(spec, longhornDisk{Path: device, DiskType: diskTypeBlock})
	if err := errors.Join(volumeErr, diskErr); err != nil {
		return Preparation{}, err
	}

	warnings, err := checkReserved(spec.StorageReserved, document.ProvisioningSpec)
	if err != nil {
		return Preparation{}, err
	}

	return longhornNode(spec, disk, append([]config.Document{document}, kernel(contract)...), warnings)
}

// kernel loads the V2 engine's modules and sets its huge pages: in documents of their own where the contract has them.
func kernel(contract version.Contract) []config.Document {
	modern := contract.Machinery()

	var documents []config.Document

	legacy := &v1alpha1.MachineConfig{}

	if modern.MultidocKernelModuleConfigSupported() {
		for _, name := range longhornV2Modules {
			documents = append(documents, runtime.NewKernelModuleConfigV1Alpha1(name))
		}
	} else {
		legacy.MachineKernel = &v1alpha1.KernelConfig{}
		for _, name := range longhornV2Modules {
			legacy.MachineKernel.KernelModules = append(legacy.MachineKernel.KernelModules, &v1alpha1.KernelModuleConfig{ModuleName: name})
		}
	}

	parameters := map[string]string{hugePagesSysctl: hugePages}

	if modern.MultidocSysctlConfigSupported() {
		sysctl := runtime.NewSysctlConfigV1Alpha1()
		sysctl.Params = parameters
		documents = append(documents, sysctl)
	} else {
		legacy.MachineSysctls = parameters
	}

	if legacy.MachineKernel != nil || legacy.MachineSysctls != nil {
		documents = append(documents, &v1alpha1.Config{ConfigVersion: "v1alpha1", MachineConfig: legacy})
	}

	return documents
}

// longhornDiskOf adds to a disk what the spec says of it.
func longhornDiskOf(spec *bootstrapv1.TalosStorageSpec, disk longhornDisk) (longhornDisk, error) {
	disk.Name = longhornName
	disk.AllowScheduling = true
	disk.Tags = slices.Sorted(slices.Values(spec.DiskTags))

	var errs []error

	for at, err := range badTags(spec.NodeTags) {
		errs = append(errs, fault(fmt.Sprintf("spec.nodeTags[%d]", at), "%w", err))
	}

	for at, err := range badTags(spec.DiskTags) {
		errs = append(errs, fault(fmt.Sprintf("spec.diskTags[%d]", at), "%w", err))
	}

	if spec.Namespace != "" {
		for _, problem := range validation.IsDNS1123Label(spec.Namespace) {
			errs = append(errs, fault("spec.namespace", "%q: %s", spec.Namespace, problem))
		}
	}

	if reserved := spec.StorageReserved; reserved != nil {
		bytes, whole := reserved.AsInt64()
		if !whole || bytes < 0 {
			errs = append(errs, fault("spec.storageReserved", "%s must be a whole number of bytes, zero or more, for example 10Gi", reserved))
		}

		disk.StorageReserved = bytes
	}

	return disk, errors.Join(errs...)
}

// checkReserved compares what is to stay free with what is known of the disk's size. Longhorn ignores the whole annotation if more is
// reserved than the disk has.
func checkReserved(reserved *resource.Quantity, spec block.ProvisioningSpec) ([]string, error) {
	if reserved == nil || reserved.Sign() <= 0 {
		return nil, nil
	}

	bytes := uint64(reserved.Value()) //nolint:gosec // above zero
	least, most := spec.ProvisioningMinSize.Value(), spec.ProvisioningMaxSize.Value()

	if most > 0 && bytes >= most {
		return nil, fault("spec.storageReserved", "%s is not less than spec.volume.maxSize: nothing would be left for volumes", reserved)
	}

	if least > 0 && bytes >= least {
		return []string{fmt.Sprintf("spec.storageReserved %s is not less than spec.volume.minSize: on a disk of that size Longhorn ignores its disk configuration",
			reserved)}, nil
	}

	return nil, nil
}

// longhornNode adds the label and annotations by which Longhorn finds its disk.
func longhornNode(spec *bootstrapv1.TalosStorageSpec, disk longhornDisk, documents []config.Document, warnings []string) (Preparation, error) {
	disks, err := json.Marshal([]longhornDisk{disk})
	if err != nil {
		return Preparation{}, fmt.Errorf("encode Longhorn's disks: %w", err)
	}

	annotations := map[string]string{LonghornDisksConfigAnnotation: string(disks)}

	if len(spec.NodeTags) > 0 {
		tags, err := json.Marshal(slices.Sorted(slices.Values(spec.NodeTags)))
		if err != nil {
			return Preparation{}, fmt.Errorf("encode Longhorn's node tags: %w", err)
		}

		annotations[LonghornNodeTagsAnnotation] = string(tags)
	}

	return Preparation{
		Documents:       documents,
		NodeLabels:      map[string]string{LonghornCreateDiskLabel: createFromConfig},
		NodeAnnotations: annotations,
		DiskPath:        disk.Path,
		Warnings:        warnings,
	}, nil
}
