// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"slices"

	"github.com/maesh-dev/ichor/internal/codegen/model"
)

// references are the fields whose values come from Secrets and ConfigMaps of the patch's namespace, so that patches can be kept
// in Git.
func references() []model.ReferenceRow {
	return slices.Concat(credentials())
}

// credentials are secrets of users by their nature.
func credentials() []model.ReferenceRow {
	const (
		network = "config/types/network."
		redacts = "Talos' own Redact replaces it"
	)

	return []model.ReferenceRow{
		{Go: network + "WireguardConfigV1Alpha1.WireguardPrivateKey", As: model.Credential, Reason: redacts},
		{Go: network + "WireguardPeer.WireguardPresharedKey", As: model.Credential, Reason: redacts},
	}
}
