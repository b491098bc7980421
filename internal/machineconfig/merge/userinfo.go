// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	userName = regexp.MustCompile(`^[A-Za-z0-9._~%+-]+$`)
	digest   = regexp.MustCompile(`@[A-Za-z0-9+._-]+:[0-9a-fA-F]{32,}$`)
)

// HasUserInfo tells a text that has the user or password of a URL in it: in any
// URL within the text, or in one without a scheme ("user:password@host") that is
// the whole text. "user@host" without a scheme is an address, not a credential.
func HasUserInfo(text string) bool {
	if !strings.Contains(text, "@") {
		return false
	}

	if !strings.Contains(text, "://") {
		return !strings.ContainsAny(text, " \t\r\n") && !digest.MatchString(text) && hasPassword(text)
	}

	for rest, found := text, true; found; {
		if _, rest, found = strings.Cut(rest, "://"); found && hasUser(firstWord(rest)) {
			return true
		}
	}

	return false
}

// firstWord gives a URL without the text that follows it.
func firstWord(text string) string {
	if end := strings.IndexAny(text, " \t\r\n\"'<>`"); end >= 0 {
		return text[:end]
	}

	return text
}

// hasUser looks at what follows a scheme.
func hasUser(rest string) bool {
	authority := authorityOf(rest)

	return strings.Contains(authority, "@") || slashInPassword(authority, rest)
}

// hasPassword looks at a URL without a scheme.
func hasPassword(text string) bool {
	authority := authorityOf(text)

	name, _, ok := strings.Cut(authority, ":")
	if !ok || !userName.MatchString(name) || strings.EqualFold(name, "mailto") {
		return false
	}

	return strings.Contains(authority, "@") || slashInPassword(authority, text)
}

func authorityOf(text string) string {
	if end := strings.IndexAny(text, "/?#"); end >= 0 {
		return text[:end]
	}

	return text
}

// slashInPassword tells a password in which the authority seems to end, since it
// has a character that should be escaped: what comes before it is then no port.
func slashInPassword(authority, rest string) bool {
	name, port, ok := strings.Cut(authority, ":")
	if !ok || strings.HasPrefix(name, "[") {
		return false
	}

	if _, err := strconv.ParseUint(port, 10, 16); err == nil {
		return false
	}

	// A URL may end its host with a bare colon.
	return port != "" && strings.Contains(rest[len(authority):], "@")
}
