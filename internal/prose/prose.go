// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

const (
	// maxNamed is how many faults, or objects of one fault, a message names.
	maxNamed = 5

	// maxLength bounds one of them, in bytes: the message of a condition may have 32768 characters.
	maxLength = 1024

	ellipsis = "..."
)

// Shorten cuts a text that is longer than 1024 bytes between two characters, and says so by three dots.
func Shorten(text string) string { return ShortenTo(text, maxLength) }

// ShortenTo is Shorten for another limit in bytes, which has room for the dots.
func ShortenTo(text string, limit int) string {
	if len(text) <= limit {
		return text
	}

	return strings.ToValidUTF8(text[:limit-len(ellipsis)], "") + ellipsis
}

// InLine shows what a user has named as one line, whatever is in it: names and keys may hold anything.
func InLine(text string) string { return strings.ReplaceAll(Printable(text), "\n", `\n`) }

// Printable shows control characters, other line breaks and what turns the direction of text as escapes, but for the newline and the tab: a
// terminal and a condition must not obey them.
func Printable(text string) string {
	if !strings.ContainsFunc(text, isControl) {
		return text
	}

	var b strings.Builder

	for _, r := range text {
		if isControl(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}

	return b.String()
}

func isControl(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp))
}

// Named is the parts, each once, shortened, sorted and capped ("a; b; and 3 more"): the same parts give the same message in any order.
func Named(parts []string) string { return list(sorted(parts), "; ", "; and %d more") }

// Names is Named for names: "a, b and 3 more".
func Names(names []string) string { return list(sorted(names), ", ", " and %d more") }

// InOrder is Named without sorting, for parts of which the first matters most.
func InOrder(parts []string) string { return list(parts, "; ", "; and %d more") }

func sorted(parts []string) []string { return slices.Sorted(slices.Values(parts)) }

func list(parts []string, separator, more string) string {
	each := make([]string, 0, len(parts))

	for _, part := range parts {
		if part = Shorten(part); !slices.Contains(each, part) {
			each = append(each, part)
		}
	}

	if rest := len(each) - maxNamed; rest > 0 {
		return strings.Join(each[:maxNamed], separator) + fmt.Sprintf(more, rest)
	}

	return strings.Join(each, separator)
}

// Findings are messages with the objects for which they were found. The zero value is empty.
type Findings struct{ objects map[string][]string }

// Add notes a message for an object.
func (f *Findings) Add(object, message string) {
	if f.objects == nil {
		f.objects = map[string][]string{}
	}

	message = Shorten(message)
	f.objects[message] = append(f.objects[message], object)
}

// Empty says that nothing was found.
func (f *Findings) Empty() bool { return len(f.objects) == 0 }

// String is each message once, after its objects: "Machine a, Machine b and 3 more: does not render; Machine c: ...". Messages are sorted
// by their first object, so that the message of a condition changes only with what was found.
func (f *Findings) String() string {
	parts := make([]string, 0, len(f.objects))
	for _, message := range slices.Sorted(maps.Keys(f.objects)) {
		parts = append(parts, Names(f.objects[message])+": "+message)
	}

	slices.Sort(parts)

	if rest := len(parts) - maxNamed; rest > 0 {
		return fmt.Sprintf("%s; and %d more", strings.Join(parts[:maxNamed], "; "), rest)
	}

	return strings.Join(parts, "; ")
}
