// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"fmt"
	"slices"
	"strings"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// namedPairs finds variables in lists of name and value whose names say that they hold a secret: of credential providers and of containers.
// Neither has a place for a reference in the list itself.
func namedPairs(id merge.ID, leaves []merge.Leaf, secrets []string) []string {
	texts := make(map[string]string, len(leaves))
	for _, leaf := range leaves {
		texts[leaf.Pointer] = leaf.Value.Reveal()
	}

	var notices []string

	for _, leaf := range leaves {
		item, found := strings.CutSuffix(leaf.Pointer, "/value")
		if parent, index := lastTokens(item); !found || !isIndex(index) || !slices.Contains(environments, parent) {
			continue
		}

		name := texts[item+"/name"]
		if !saysSecret(name) || texts[leaf.Pointer] == "" || isWithinAny(leaf.Pointer, secrets) {
			continue
		}

		remedy := "have the program read it from a file, whose content comes from a Secret (contentFrom, contentsFrom: secretKeyRef)"
		if strings.Contains(leaf.Pointer, "/spec/") {
			remedy = "keep the whole pod in a Secret and refer to its key (podFrom, podsFrom: secretKeyRef)"
		}

		notices = append(notices, fmt.Sprintf(
			"%s: %s: the name of the variable %s says that it holds a secret, which can be read by all who may read the patch or what it refers to: %s",
			id, leaf.Pointer, name, remedy))
	}

	return notices
}
