// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"strings"

	"github.com/maesh-dev/ichor/internal/secrets"
)

// clusterSuffixes are what the names of a cluster's own secrets end in.
var clusterSuffixes = append(secrets.AuthorityNames(""), secrets.BundleName(""), secrets.TalosconfigName(""))

// ClusterOfSecret returns the cluster whose bundle, certificate authority, key or talosconfig a Secret of the name would
// be, and whether it would be one at all.
func ClusterOfSecret(name string) (string, bool) {
	for _, suffix := range clusterSuffixes {
		if cluster, found := strings.CutSuffix(name, suffix); found && cluster != "" {
			return cluster, true
		}
	}

	return "", false
}
