// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"encoding/base64"
	"regexp"
	"strings"

	"github.com/maesh-dev/ichor/internal/secrets"
)

const (
	throwawayCertificate = "(certificate of a throwaway bundle)"
	throwawayID          = "(id of a throwaway bundle)"
)

// Steady takes out of a text what is random in a throwaway bundle without being a secret, so that two runs print the same and
// can be compared. Without a throwaway bundle the text is unchanged.
func (r *Result) Steady(text string) string {
	if !r.ThrowawayBundle || r.bundle == nil {
		return text
	}

	for _, certificate := range certificatesOf(r.bundle) {
		text = strings.ReplaceAll(text, base64.StdEncoding.EncodeToString(certificate), throwawayCertificate)

		// In YAML, every line after the first has an indentation.
		lines := strings.Split(strings.TrimSpace(string(certificate)), "\n")
		for i, line := range lines {
			lines[i] = regexp.QuoteMeta(line)
		}

		text = regexp.MustCompile(strings.Join(lines, `\n *`)).ReplaceAllLiteralString(text, throwawayCertificate)
	}

	return strings.ReplaceAll(text, r.bundle.Cluster.ID, throwawayID)
}

func certificatesOf(bundle *secrets.Bundle) [][]byte {
	return [][]byte{bundle.Certs.OS.Crt, bundle.Certs.K8s.Crt, bundle.Certs.K8sAggregator.Crt, bundle.Certs.Etcd.Crt}
}
