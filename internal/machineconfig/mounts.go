// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"fmt"
	"path"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// longhornDirectory is Longhorn's default for its data, which is on the EPHEMERAL volume of a Talos machine.
const longhornDirectory = "/var/lib/longhorn"

// extraMounts visits the mounts that the config adds to the kubelet. Only the legacy document has them.
func extraMounts(documents []config.Document, visit func(pointer, source, destination string)) {
	machine, _ := legacyOf(documents)
	if machine.MachineKubelet == nil {
		return
	}

	for i, mount := range machine.MachineKubelet.KubeletExtraMounts {
		visit(fmt.Sprintf("/machine/kubelet/extraMounts/%d", i), path.Clean(mount.Source), path.Clean(mount.Destination))
	}
}

// hiddenVolumes finds mounts of the kubelet that would lie over a volume of the same config: pods would write to another disk. Longhorn's own
// guide binds the volume to its own path, which does no such thing, unless Longhorn's directory on EPHEMERAL is bound too: then EPHEMERAL
// comes to lie over the volume on the whole machine.
func hiddenVolumes(documents []config.Document) []finding {
	volumes := map[string]string{}

	for _, document := range documents {
		switch document.Kind() {
		case block.UserVolumeConfigKind, block.ExistingVolumeConfigKind, block.ExternalVolumeConfigKind:
			id := merge.IDOf(document)
			volumes[id.Name] = id.String()
		}
	}

	ephemeral := false

	extraMounts(documents, func(_, source, destination string) {
		ephemeral = ephemeral || source == destination && isWithin(destination, longhornDirectory)
	})

	var findings []finding

	extraMounts(documents, func(pointer, source, destination string) {
		if source == destination && !ephemeral {
			return
		}

		below, ok := strings.CutPrefix(destination, constants.UserVolumeMountPoint+"/")
		if !ok {
			return
		}

		name, _, _ := strings.Cut(below, "/")
		if volume, ok := volumes[name]; ok {
			findings = append(findings, finding{
				document: merge.ID{Kind: merge.LegacyKind}, field: pointer,
				err: fmt.Errorf("mounts %s, where Talos mounts %s into the kubelet itself, and hides the volume: remove the mount", destination, volume),
			})
		}
	})

	return findings
}

// harmfulMounts finds kubelet mounts that do damage: under /var/mnt, Talos mounts user volumes itself, and a shared mount there
// multiplies with every start of the kubelet; the Longhorn directory would come to lie on the EPHEMERAL volume.
func harmfulMounts(documents []config.Document) []string {
	var notices []string

	extraMounts(documents, func(pointer, _, destination string) {
		if isWithin(destination, constants.UserVolumeMountPoint) || isWithin(destination, longhornDirectory) {
			notices = append(notices, fmt.Sprintf(
				"%s: %s: %s: Talos mounts user volumes below %s into the kubelet itself, and a mount of its own hides the volume or multiplies: remove it",
				merge.LegacyKind, pointer, destination, constants.UserVolumeMountPoint))
		}
	})

	return notices
}
