// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"encoding"
	"errors"
	"fmt"
	"net/url"

	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	"github.com/siderolabs/talos/pkg/machinery/config/types/block"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/expression"
)

const (
	// wholeDisk is the greatest size of a partition of which the user says none. It is always given: Talos refuses a partition without
	// any size. Shares of a disk are understood by every Talos that nodes may run.
	wholeDisk = "100%"

	defaultFilesystem  = string(bootstrapv1.StorageFilesystemXFS)
	encryptionProvider = "luks2"

	sizes         = `must be a size above zero, for example "500GiB"`
	sizesOrShares = sizes + `, or a share of the disk from 1% to 100%`

	// maxKeySlot is the last key slot of LUKS2.
	maxKeySlot = 31
)

// userVolume is a volume with a file system, which Talos mounts at /var/mnt/<name>. A volume of which nothing is said is a directory on
// EPHEMERAL: it takes no disk that the user has not named, and it is what Talos' own tests run Longhorn on.
func userVolume(name string, volume bootstrapv1.StorageVolume) (*block.UserVolumeConfigV1Alpha1, error) {
	document := block.NewUserVolumeConfigV1Alpha1()
	document.MetaName = name
	document.VolumeType = new(block.VolumeType)

	switch volume.Type {
	case "", bootstrapv1.StorageVolumeDirectory:
		err := onlyDirectory(volume)
		if err != nil && volume.Type == "" {
			err = volumeFault("type", "must be set to Partition or Disk with any other field of the volume")
		}

		return document, errors.Join(err, set(document.VolumeType, "directory"))
	case bootstrapv1.StorageVolumeDisk, bootstrapv1.StorageVolumePartition:
	default:
		return nil, volumeFault("type", "%q is no type: must be Directory, Partition or Disk", volume.Type)
	}

	errs := []error{
		setField("filesystem", "must be xfs or ext4", &document.FilesystemSpec.FilesystemType, or(string(volume.Filesystem), defaultFilesystem)),
	}

	if volume.Type == bootstrapv1.StorageVolumeDisk {
		errs = append(errs, set(document.VolumeType, "disk"), onlyWholeDisk(volume))
		volume.MinSize, volume.MaxSize = "", ""
	} else {
		errs = append(errs, set(document.VolumeType, "partition"))
		volume.MaxSize = or(volume.MaxSize, wholeDisk)
	}

	var err error

	document.ProvisioningSpec, err = provisioning(volume)
	errs = append(errs, err)

	document.EncryptionSpec, err = encryption(volume.Encryption)

	return document, errors.Join(append(errs, err)...)
}

// rawVolume is a partition without a file system, at /dev/disk/by-partlabel/r-<name>.
func rawVolume(name string, volume bootstrapv1.StorageVolume) (*block.RawVolumeConfigV1Alpha1, error) {
	document := block.NewRawVolumeConfigV1Alpha1()
	document.MetaName = name

	if volume.Type != bootstrapv1.StorageVolumePartition {
		return nil, volumeFault("type", "must be Partition with preset %s, which needs a raw block device; without sizes it takes the whole disk",
			bootstrapv1.StoragePresetLonghornV2)
	}

	var errs []error

	if volume.Filesystem != "" {
		errs = append(errs, volumeFault("filesystem", "must not be set with preset %s, which uses the block device itself", bootstrapv1.StoragePresetLonghornV2))
	}

	// The label of an encrypted partition leads to its LUKS header: a storage system that is pointed there overwrites it.
	if len(volume.Encryption.Keys) > 0 {
		errs = append(errs, volumeFault("encryption", "must not be set with preset %s, which would write over the encrypted partition's header",
			bootstrapv1.StoragePresetLonghornV2))
	}

	volume.MaxSize = or(volume.MaxSize, wholeDisk)

	var err error

	document.ProvisioningSpec, err = provisioning(volume)

	return document, errors.Join(append(errs, err)...)
}

// provisioning says on which disk a volume is made, and how large.
func provisioning(volume bootstrapv1.StorageVolume) (block.ProvisioningSpec, error) {
	spec := block.ProvisioningSpec{}

	var errs []error

	if volume.DiskSelector == "" {
		errs = append(errs, volumeFault("diskSelector", `must be set with type %s, for example disk.transport == "nvme" && !system_disk`, volume.Type))
	} else if match, err := expression.ParseSelector(volume.DiskSelector, celenv.DiskLocator()); err != nil {
		errs = append(errs, volumeFault("diskSelector", "%w", err))
	} else {
		spec.DiskSelectorSpec.Match = match
	}

	errs = append(errs,
		setField("minSize", sizes, &spec.ProvisioningMinSize, volume.MinSize),
		setField("maxSize", sizesOrShares, &spec.ProvisioningMaxSize, volume.MaxSize))

	if err := errors.Join(errs...); err != nil {
		return spec, err
	}

	return spec, checkSizes(volume, spec)
}

// checkSizes refuses sizes that can be read and that no partition can have.
func checkSizes(volume bootstrapv1.StorageVolume, spec block.ProvisioningSpec) error {
	least, most := spec.ProvisioningMinSize, spec.ProvisioningMaxSize
	share, relative := most.RelativeValue()
	greatest := most.Value()

	if relative {
		greatest = share
	}

	switch {
	case volume.MinSize != "" && (least.IsNegative() || least.Value() == 0):
		return volumeFault("minSize", "%q: %s", volume.MinSize, sizes)
	case volume.MaxSize != "" && (most.IsNegative() || greatest == 0):
		return volumeFault("maxSize", "%q: %s", volume.MaxSize, sizesOrShares)
	case !relative && volume.MaxSize != "" && least.Value() > greatest:
		return volumeFault("minSize", "%s is more than maxSize %s", volume.MinSize, volume.MaxSize)
	}

	return nil
}

// encryption makes a LUKS2 volume with the given keys. None of them is a secret: they are made on the node, or sealed by a service.
func encryption(from bootstrapv1.StorageEncryption) (block.EncryptionSpec, error) {
	if len(from.Keys) == 0 {
		return block.EncryptionSpec{}, nil
	}

	spec := block.EncryptionSpec{}
	errs := []error{set(&spec.EncryptionProvider, encryptionProvider)}
	slots := map[int32]bool{}

	for i, key := range from.Keys {
		field := fmt.Sprintf("encryption.keys[%d].", i)

		made, err := encryptionKey(field, key)
		if err == nil && slots[*key.Slot] {
			err = volumeFault(field+"slot", "%d is used twice", *key.Slot)
		}

		if err != nil {
			errs = append(errs, err)

			continue
		}

		slots[*key.Slot] = true
		spec.EncryptionKeys = append(spec.EncryptionKeys, made)
	}

	return spec, errors.Join(errs...)
}

func encryptionKey(field string, from bootstrapv1.StorageEncryptionKey) (block.EncryptionKey, error) {
	if from.Slot == nil || *from.Slot < 0 || *from.Slot > maxKeySlot {
		return block.EncryptionKey{}, volumeFault(field+"slot", "must be set, from 0 to %d", maxKeySlot)
	}

	key := block.EncryptionKey{KeySlot: int(*from.Slot)}

	switch from.Source {
	case bootstrapv1.StorageEncryptionKeyNodeID:
		key.KeyNodeID = &block.EncryptionKeyNodeID{}
	case bootstrapv1.StorageEncryptionKeyTPM:
		key.KeyTPM = &block.EncryptionKeyTPM{}
	case bootstrapv1.StorageEncryptionKeyKMS:
		endpoint, err := url.Parse(from.KMSEndpoint)
		if err != nil || endpoint.Host == "" || endpoint.User != nil || endpoint.RawQuery != "" || endpoint.Fragment != "" ||
			(endpoint.Scheme != "https" && endpoint.Scheme != "grpc") {
			// Not quoted: what a user wrongly puts there may be a credential.
			return key, volumeFault(field+"kmsEndpoint", "must be the address of the service, https:// or grpc://, without credentials, ? and #")
		}

		key.KeyKMS = &block.EncryptionKeyKMS{KMSEndpoint: from.KMSEndpoint}
	default:
		return key, volumeFault(field+"source", "%q is no source: must be NodeID, TPM or KMS", from.Source)
	}

	if from.KMSEndpoint != "" && key.KeyKMS == nil {
		return key, volumeFault(field+"kmsEndpoint", "must not be set with source %s", from.Source)
	}

	return key, nil
}

// onlyDirectory refuses what a directory cannot have. Talos refuses it too, but of a document that the user did not write.
func onlyDirectory(volume bootstrapv1.StorageVolume) error {
	var errs []error

	for _, field := range []struct {
		name  string
		isSet bool
	}{
		{"diskSelector", volume.DiskSelector != ""},
		{"minSize", volume.MinSize != ""},
		{"maxSize", volume.MaxSize != ""},
		{"filesystem", volume.Filesystem != ""},
		{"encryption", len(volume.Encryption.Keys) > 0},
	} {
		if field.isSet {
			errs = append(errs, volumeFault(field.name, "must not be set with type Directory: it has the disk, size and file system of EPHEMERAL"))
		}
	}

	return errors.Join(errs...)
}

func onlyWholeDisk(volume bootstrapv1.StorageVolume) error {
	var errs []error

	if volume.MinSize != "" {
		errs = append(errs, volumeFault("minSize", "must not be set with type Disk, which uses the whole disk"))
	}

	if volume.MaxSize != "" {
		errs = append(errs, volumeFault("maxSize", "must not be set with type Disk, which uses the whole disk"))
	}

	return errors.Join(errs...)
}

// set gives a Talos value its text form; nothing is set from an empty text.
func set(target encoding.TextUnmarshaler, text string) error {
	if text == "" {
		return nil
	}

	return target.UnmarshalText([]byte(text))
}

// setField is set for a value that the user wrote; rule says what it must be.
func setField(field, rule string, target encoding.TextUnmarshaler, text string) error {
	if set(target, text) != nil {
		return volumeFault(field, "%q: %s", text, rule)
	}

	return nil
}

func volumeFault(field, format string, arguments ...any) error {
	return fault("spec.volume."+field, format, arguments...)
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}

	return text
}
