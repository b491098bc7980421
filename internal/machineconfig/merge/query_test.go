// SPDX-License-Identifier: Apache-2.0

package merge

import "testing"

func TestHasCredentialQuery(t *testing.T) {
	t.Parallel()

	cases := map[string]bool{
		"https://example.com/manifest.yaml?token=abc":          true,
		"https://example.com/x?ref=v1&private_token=abc":       true,
		"https://store.example.com/x?sv=2&sig=abc%3D":          true,
		"https://example.com/x?X-Amz-Signature=abc":            true,
		"grpc://sidero.example.com?jointoken=abc":              true,
		"https://example.com/x?accessToken=abc":                true,
		"https://example.com/x?a=b;client-secret=abc":          true,
		"https://example.com/x?X-Goog-Credential=abc":          true,
		"https://example.com/x?pwd=abc":                        true,
		"curl \"https://example.com/x?token=\"$TOKEN":          false,
		"https://example.com/x?compass=n&monkey=a":             false,
		"https://example.com/manifest.yaml":                    false,
		"https://example.com/x?token=":                         false,
		"https://example.com/x?ref=main&keyboard=de":           false,
		"https://example.com/token/key=1":                      false,
		"token=abc":                                            false,
		"disk.size > 10u * GB && disk.transport == \"nvme\"":   false,
		"https://factory.example.com/?target=metal&arch=arm64": false,
	}

	for text, want := range cases {
		if got := HasCredentialQuery(text); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}
