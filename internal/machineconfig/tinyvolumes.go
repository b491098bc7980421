// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/imager/quirks"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// What the programs that make file systems and encryption need at least, in bytes: XFS has no smaller allocation group, btrfs no smaller
// device, and the header of LUKS2 comes before either.
const (
	smallestXFS   = 16 << 20
	smallestBtrfs = 109 << 20
	luksHeader    = 16 << 20
)

// tinyVolumes finds volumes that may not become as large as what is made on them: the machine would try for ever.
func tinyVolumes(documents []config.Document) []finding {
	var findings []finding

	look := func(document config.Document, most block.Size, least uint64, encrypted bool, what string) {
		if encrypted {
			least += luksHeader
		}

		if most.IsZero() || most.IsRelative() || most.IsNegative() || most.Value() >= least {
			return
		}

		findings = append(findings, finding{
			document: merge.IDOf(document), field: "/provisioning/maxSize",
			err: fmt.Errorf("is %d MiB, and %s needs at least %d MiB: give the volume that much, or leave maxSize out", most.Value()>>20, what, least>>20),
		})
	}

	for _, document := range documents {
		switch typed := document.(type) {
		case *block.UserVolumeConfigV1Alpha1:
			least, what := smallestOf(typed.FilesystemSpec.Type())
			look(document, typed.ProvisioningSpec.ProvisioningMaxSize, least, len(typed.EncryptionSpec.EncryptionKeys) > 0, what)
		case *block.VolumeConfigV1Alpha1:
			// With a size of its own it is the user's choice.
			if typed.MetaName == constants.EphemeralPartitionLabel && typed.ProvisioningSpec.ProvisioningMinSize.IsZero() {
				look(document, typed.ProvisioningSpec.ProvisioningMaxSize, quirks.New("").PartitionSizes().EphemeralMinSize(), false, "a machine")
			}
		}
	}

	return findings
}

// smallestOf is what a file system needs at least, nothing that matters for the others.
func smallestOf(filesystem fmt.Stringer) (least uint64, what string) {
	switch name := filesystem.String(); name {
	case "xfs":
		return smallestXFS, "XFS"
	case "btrfs":
		return smallestBtrfs, name
	default:
		return 0, name
	}
}
