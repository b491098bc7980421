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

var errHostname = errors.New("not a hostname: lower case letters, digits, '-' and '.', and at most 253 of them, as the Node's name has it")

// badHostname finds a hostname that DNS and the Node object refuse.
func badHostname(merged *merge.Config) []finding {
	var findings []finding

	look := func(id merge.ID, pointer, name string) {
		if name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
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
