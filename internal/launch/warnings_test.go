// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A warning about a Secret may quote it; all others reach the log.
func TestWarningsAboutSecrets(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Warning", `299 - "said"`)
	}))
	defer server.Close()

	api := &http.Client{Transport: withoutSecretWarnings(http.DefaultTransport)}
	tests := map[string]string{
		"/api/v1/namespaces/n/secrets":            "",
		"/api/v1/namespaces/n/secrets/s":          "",
		"/api/v1/secrets":                         "",
		"/prefix/api/v1/namespaces/n/secrets/s":   "",
		"/api/v1/namespaces/secrets/configmaps/c": `299 - "said"`,
		"/api/v1/namespaces/secrets":              `299 - "said"`,
		"/api":                                    `299 - "said"`,
		"/apis/bootstrap.ichor.maesh.dev/v1alpha1/namespaces/n/secrets": `299 - "said"`,
	}

	for path, want := range tests {
		t.Run(path, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}

			response, err := api.Do(request)
			if err != nil {
				t.Fatal(err)
			}

			defer response.Body.Close() //nolint:errcheck // it is empty

			if diff := cmp.Diff(want, response.Header.Get("Warning")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
