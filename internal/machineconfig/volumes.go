// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/config/types/container"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// What LUKS2 knows.
var (
	luksCiphers = []string{"aes-xts-plain64", "xchacha12,aes-adiantum-plain64", "xchacha20,aes-adiantum-plain64"}
	luksSectors = []uint64{512, 1024, 2048, 4096}
	luksOptions = []string{"same_cpu_crypt", "submit_from_crypt_cpus", "no_read_workqueue", "no_write_workqueue"}
)

// luksSlots is how many keys a LUKS2 volume has room for.
const luksSlots = 32

// luks is the encryption of a volume, in either layout.
type luks struct {
	cipher    string
	keySize   uint
	blockSize uint64
	options   []string
	keys      []luksKey
}

type luksKey struct {
	slot  int
	kinds []string
	kms   *string
}

// volumeValues finds encryption that no volume can have, and mounts of containers that come to nothing: the machine waits for the volume for
// ever, with its STATE in the worst case.
func (s *shapes) volumeValues(document config.Document) {
	switch typed := document.(type) {
	case *block.UserVolumeConfigV1Alpha1:
		s.luks("/encryption", modernLUKS(typed.EncryptionSpec))
	case *block.RawVolumeConfigV1Alpha1:
		s.luks("/encryption", modernLUKS(typed.EncryptionSpec))
	case *block.SwapVolumeConfigV1Alpha1:
		s.luks("/encryption", modernLUKS(typed.EncryptionSpec))
	case *block.VolumeConfigV1Alpha1:
		s.luks("/encryption", modernLUKS(typed.EncryptionSpec))
	case *v1alpha1.Config:
		if typed.MachineConfig == nil || typed.MachineConfig.MachineSystemDiskEncryption == nil {
			return
		}

		s.legacyLUKS("/machine/systemDiskEncryption/state", typed.MachineConfig.MachineSystemDiskEncryption.StatePartition)
		s.legacyLUKS("/machine/systemDiskEncryption/ephemeral", typed.MachineConfig.MachineSystemDiskEncryption.EphemeralPartition)
	case *container.ContainerConfigV1Alpha1:
		for i, mount := range typed.MountsConfig {
			if mount.TmpfsMount != nil && mount.TmpfsMount.MountSize != "" && new(block.ByteSize).UnmarshalText([]byte(mount.TmpfsMount.MountSize)) != nil {
				s.add(fmt.Sprintf("/mounts/%d/tmpfs/size", i), errors.New("is no size, and the container would not start: write it as 64MiB"))
			}
		}
	}
}

func modernLUKS(spec block.EncryptionSpec) luks {
	volume := luks{cipher: spec.EncryptionCipher, keySize: spec.EncryptionKeySize, blockSize: spec.EncryptionBlockSize, options: spec.EncryptionPerfOptions}

	for _, key := range spec.EncryptionKeys {
		each := luksKey{slot: key.KeySlot, kinds: kindsOf(key.KeyNodeID != nil, key.KeyKMS != nil, key.KeyTPM != nil)}
		if key.KeyKMS != nil {
			each.kms = &key.KeyKMS.KMSEndpoint
		}

		volume.keys = append(volume.keys, each)
	}

	return volume
}

func (s *shapes) legacyLUKS(pointer string, spec *v1alpha1.EncryptionConfig) {
	if spec == nil {
		return
	}

	volume := luks{cipher: spec.EncryptionCipher, keySize: spec.EncryptionKeySize, blockSize: spec.EncryptionBlockSize, options: spec.EncryptionPerfOptions}

	for _, key := range spec.EncryptionKeys {
		each := luksKey{slot: key.KeySlot, kinds: kindsOf(key.KeyNodeID != nil, key.KeyKMS != nil, key.KeyTPM != nil)}
		if key.KeyKMS != nil {
			each.kms = &key.KeyKMS.KMSEndpoint
		}

		volume.keys = append(volume.keys, each)
	}

	// Talos takes none for luks2.
	if spec.EncryptionProvider != "" && spec.EncryptionProvider != "luks2" {
		s.add(pointer+"/provider", fmt.Errorf("is %q: use luks2, the one that there is", spec.EncryptionProvider))
	}

	s.luks(pointer, volume)
}

// kindsOf names the kinds of a key that are set. A passphrase is no kind that a config has.
func kindsOf(nodeID, kms, tpm bool) []string {
	var kinds []string

	for _, kind := range []struct {
		name string
		set  bool
	}{{"nodeID", nodeID}, {"kms", kms}, {"tpm", tpm}} {
		if kind.set {
			kinds = append(kinds, kind.name)
		}
	}

	return kinds
}

func (s *shapes) luks(pointer string, volume luks) {
	for i, key := range volume.keys {
		at := fmt.Sprintf("%s/keys/%d", pointer, i)

		if key.slot < 0 || key.slot >= luksSlots {
			s.add(at+"/slot", fmt.Errorf("is %d, and LUKS has the slots 0 to %d", key.slot, luksSlots-1))
		}

		if len(key.kinds) > 1 {
			s.add(at, fmt.Errorf("has %s, of which Talos takes one and leaves out the rest: write a key with a slot of its own for each", strings.Join(key.kinds, " and ")))
		}

		if key.kms != nil && !isKMS(*key.kms) {
			s.add(at+"/kms/endpoint", errors.New("is no address of a key server: write it as https://kms.example.com:4050"))
		}
	}

	if volume.cipher != "" && !slices.Contains(luksCiphers, volume.cipher) {
		s.add(pointer+"/cipher", fmt.Errorf("is not known: use one of %q, or leave it out", luksCiphers))
	}

	if size := volume.keySize; size != 0 && size != 256 && size != 512 {
		s.add(pointer+"/keySize", fmt.Errorf("is %d bits, which no cipher takes: 512 or 256 with aes-xts-plain64, 256 with the others, or leave it out", size))
	}

	if volume.blockSize != 0 && !slices.Contains(luksSectors, volume.blockSize) {
		s.add(pointer+"/blockSize", fmt.Errorf("is %d bytes: use one of %v, or leave it out", volume.blockSize, luksSectors))
	}

	for i, option := range volume.options {
		if !slices.Contains(luksOptions, option) {
			s.add(fmt.Sprintf("%s/options/%d", pointer, i), fmt.Errorf("is not known: use those of %q, or leave it out", luksOptions))
		}
	}
}

// isKMS tells the address of a key server: a URL, or a host with or without a port.
func isKMS(endpoint string) bool {
	if !strings.Contains(endpoint, "://") {
		endpoint = "https://" + endpoint
	}

	server, err := url.Parse(endpoint)

	return err == nil && isHost(server.Hostname())
}

// missingVolumes finds mounts of containers from volumes that the config does not have: the container waits for them for ever.
func missingVolumes(documents []config.Document) []finding {
	volumes := map[string]bool{}

	for _, document := range documents {
		switch document.Kind() {
		case block.UserVolumeConfigKind, block.ExistingVolumeConfigKind, block.ExternalVolumeConfigKind:
			volumes[merge.IDOf(document).Name] = true
		}
	}

	var findings []finding

	for _, document := range documents {
		typed, ok := document.(*container.ContainerConfigV1Alpha1)
		if !ok {
			continue
		}

		for i, mount := range typed.MountsConfig {
			if mount.UserVolumeMount != nil && mount.UserVolumeMount.VolumeName != "" && !volumes[mount.UserVolumeMount.VolumeName] {
				findings = append(findings, finding{
					document: merge.IDOf(document), field: fmt.Sprintf("/mounts/%d/userVolume/name", i),
					err: fmt.Errorf("the machine has no volume %q, and the container would wait for it: add a UserVolumeConfig of that name, or correct it", mount.UserVolumeMount.VolumeName),
				})
			}
		}
	}

	return findings
}
