// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"strings"
	"unicode"

	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

var errControl = errors.New("has a control character, such as a line break: remove it")

// badNames finds names and keys that machinery takes and that nothing on a node can be called.
func badNames(patch *merge.Patch) []finding {
	var findings []finding

	for _, part := range patch.Documents() {
		if strings.ContainsFunc(part.ID.Name, unicode.IsControl) {
			findings = append(findings, finding{document: part.ID, field: "/name", err: errControl})
		}

		if part.Document == nil {
			continue
		}

		for _, leaf := range merge.LeavesOf(part.Document) {
			if strings.ContainsFunc(leaf.Pointer, unicode.IsControl) {
				findings = append(findings, finding{document: part.ID, field: leaf.Pointer, err: errControl})
			}
		}
	}

	return findings
}

var errHostname = errors.New("not a hostname: letters, digits, '-', '_' and '.', and at most 253 of them, of which Talos makes the Node's name in lower case")

// nodeName is how Talos names the Node of a machine with a hostname. Talos leaves out what no name can have; here that stays, since such a
// hostname, as with a space, is none to the machine's own programs.
func nodeName(hostname string) string {
	return strings.Trim(strings.ReplaceAll(strings.ToLower(hostname), "_", "-"), "-.")
}

// badHostname finds a hostname that no Node can be named after.
func badHostname(merged *merge.Config) []finding {
	var findings []finding

	look := func(id merge.ID, pointer, name string) {
		if name != "" && len(validation.IsDNS1123Subdomain(nodeName(name))) > 0 {
			findings = append(findings, finding{document: id, field: pointer, err: errHostname})
		}
	}

	if document, ok := documentOf[*network.HostnameConfigV1Alpha1](merged.Documents()); ok {
		look(hostnameConfig, "/hostname", document.ConfigHostname)
	}

	if machine, _ := legacyOf(merged.Documents()); machine.MachineNetwork != nil {
		look(merge.ID{Kind: merge.LegacyKind}, "/machine/network/hostname", machine.MachineNetwork.NetworkHostname)
	}

	return findings
}
