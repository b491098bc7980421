// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"regexp"
	"strings"
)

// credentialQuery is a parameter of a URL's query whose name says that its value is a credential.
var credentialQuery = regexp.MustCompile(
	`(?i)://\S*[?&;](?:[a-z0-9_.-]*[_.-])?(?:token|jointoken|secret|password|passwd|apikey|api_key|access_key|key|sig|signature|auth|credential)=[^&\s]`)

// hasCredentialQuery tells a URL with a credential in its query ("?token=...").
func hasCredentialQuery(text string) bool {
	return strings.Contains(text, "?") && credentialQuery.MatchString(text)
}
