// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/cri"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
	"github.com/maesh-dev/ichor/internal/version"
)

// joinedSettings are the settings that Talos takes in two forms at once and joins on the node, as movedSettings are those that it does
// not; see twoForms. From since on, the config contract has the document.
var joinedSettings = []moved{
	{"/machine/sysctls", runtime.SysctlConfigKind, 14, "SysctlConfig (params)"},
	{"/machine/sysfs", runtime.SysfsConfigKind, 14, "SysfsConfig (params)"},
	{"/machine/env", runtime.EnvironmentConfigKind, 13, "EnvironmentConfig (variables)"},
	{"/machine/kernel/modules", runtime.KernelModuleConfigKind, 14, "a KernelModuleConfig for each module"},
	{"/machine/udev/rules", runtime.UdevRulesConfigKind, 14, "UdevRulesConfig (rules)"},
	{"/machine/pods", k8s.KubeStaticPodConfig, 14, "a KubeStaticPodConfig for each pod"},
	{"/machine/registries/mirrors", cri.RegistryMirrorConfig, 12, "spec.registries of the TalosClusterConfig, or a RegistryMirrorConfig for each registry"},
	{"/machine/registries/config", cri.RegistryAuthConfig, 12, "spec.registries of the TalosClusterConfig, or RegistryAuthConfig and RegistryTLSConfig for each registry"},
	{"/machine/network/interfaces", network.LinkKind, 12, "LinkConfig, BondConfig, VLANConfig and their like"},
	{"/machine/network/extraHostEntries", network.StaticHostKind, 12, "a StaticHostConfig for each address"},
	{"/cluster/inlineManifests", k8s.KubeInlineManifestConfig, 14, "a KubeInlineManifestConfig for each manifest"},
	{"/cluster/extraManifests", k8s.KubeExternalManifestConfig, 14, "a KubeExternalManifestConfig for each manifest"},
}

// OldForm is a setting of the legacy document that the config contract has in a document of its own.
type OldForm struct {
	// Pointer of the setting in the legacy document.
	Pointer string

	// Write is where it goes: kind and field, or what to do instead.
	Write string
}

// OldForms are the settings in a document of a patch that the contract has elsewhere, sorted. There are none in a modern document.
func OldForms(contract version.Contract, document config.Document) []OldForm {
	if merge.IDOf(document).Kind != merge.LegacyKind {
		return nil
	}

	settings, err := tree(document)
	if err != nil {
		return nil
	}

	var present []moved

	for _, row := range slices.Concat(movedSettings, joinedSettings) {
		if contract.AtLeast(row.since) && isSet(settings, row.pointer) {
			present = append(present, row)
		}
	}

	var forms []OldForm

	for _, row := range present {
		within := func(other moved) bool { return strings.HasPrefix(other.pointer, row.pointer+"/") }
		known := func(form OldForm) bool { return form.Pointer == row.pointer }

		// Of several documents that refuse the same setting, the first row tells where it goes.
		if !slices.ContainsFunc(present, within) && !slices.ContainsFunc(forms, known) {
			forms = append(forms, OldForm{row.pointer, row.write})
		}
	}

	slices.SortFunc(forms, func(a, b OldForm) int { return strings.Compare(a.Pointer, b.Pointer) })

	return forms
}
