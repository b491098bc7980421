// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"net/http"
	"slices"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// withoutSecretWarnings takes the warnings off the answers to requests for Secrets. The manager logs warnings, and an admission policy that
// warns may quote the Secret in its text.
func withoutSecretWarnings(next http.RoundTripper) http.RoundTripper {
	return secretWarnings{next}
}

type secretWarnings struct{ next http.RoundTripper }

var _ utilnet.RoundTripperWrapper = secretWarnings{}

// RoundTrip sends the request.
func (t secretWarnings) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err == nil && isForSecrets(request.URL.Path) {
		response.Header.Del("Warning")
	}

	return response, err
}

// WrappedRoundTripper is for those who look for what can be cancelled.
func (t secretWarnings) WrappedRoundTripper() http.RoundTripper { return t.next }

// isForSecrets says whether a path is that of Secrets: /api/v1/secrets, or /api/v1/namespaces/NAMESPACE/secrets and what is below.
func isForSecrets(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	core := slices.Index(parts, "api")

	if core < 0 || len(parts) < core+3 {
		return false
	}

	parts = parts[core+2:]

	return parts[0] == "secrets" || len(parts) > 2 && parts[0] == "namespaces" && parts[2] == "secrets"
}
