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

// badHostname finds a hostname that DNS and the Node object refuse.
func badHostname(merged *merge.Config) []finding {
	document, ok := documentOf[*network.HostnameConfigV1Alpha1](merged.Documents())
	if !ok || document.ConfigHostname == "" {
		return nil
	}

	if faults := validation.IsDNS1123Subdomain(document.ConfigHostname); len(faults) > 0 {
		return []finding{{document: hostnameConfig, field: "/hostname", err: errors.New("not a hostname: lower case letters, digits, '-' and '.', and at most 253 of them, as the Node's name has it")}}
	}

	return nil
}
