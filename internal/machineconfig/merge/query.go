// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"regexp"
	"strings"
)

// credentialQuery is a parameter of a URL's query whose name says that its value is a credential: words that say so at the end of a name
// as well (accessToken), and words that do so only when they stand alone (api-key, but no monkey).
var credentialQuery = regexp.MustCompile(
	`(?i)://\S*[?&;](?:[a-z0-9_.-]*(?:token|secret|password|passwd|apikey|authkey|accesskey|secretkey|privatekey|signature|credentials?)` +
		`|(?:[a-z0-9_.-]*[_.-])?(?:key|sig|auth|pass|pwd|jwt))=[^&\s"'` + "`]")

// HasCredentialQuery tells a URL with a credential in its query ("?token=...").
func HasCredentialQuery(text string) bool {
	return strings.Contains(text, "?") && credentialQuery.MatchString(text)
}
