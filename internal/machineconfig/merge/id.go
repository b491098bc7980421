// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
)

// LegacyKind is the kind that this package gives to the legacy document, which
// has no kind of its own in YAML.
const LegacyKind = "Config"

// ID identifies a Talos document. Kind is Talos' kind ("UserVolumeConfig"), or
// LegacyKind. Name is empty for a kind of which a config has at most one.
type ID struct{ Kind, Name string }

// String gives "Kind/name", or "Kind" without a name.
func (id ID) String() string {
	if id.Name == "" {
		return id.Kind
	}

	return id.Kind + "/" + id.Name
}

// IDOf gives the identity of a document.
func IDOf(doc config.Document) ID {
	if _, legacy := doc.(*v1alpha1.Config); legacy {
		return ID{Kind: LegacyKind}
	}

	id := ID{Kind: doc.Kind()}
	if named, ok := doc.(config.NamedDocument); ok {
		id.Name = named.Name()
	}

	return id
}
