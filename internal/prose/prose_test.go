// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestNamed(t *testing.T) {
	many := make([]string, 9)
	for i := range many {
		many[len(many)-1-i] = fmt.Sprintf("fault %d", i)
	}

	tests := map[string]struct {
		got, want string
	}{
		"none":         {Named(nil), ""},
		"sorted, once": {Named([]string{"b", "a", "b"}), "a; b"},
		"capped":       {Named(many), "fault 0; fault 1; fault 2; fault 3; fault 4; and 4 more"},
		"names":        {Names([]string{"w-2", "w-1", "w-2"}), "w-1, w-2"},
		"in order":     {InOrder([]string{"b", "a", "b"}), "b; a"},
		"the first":    {InOrder(many), "fault 8; fault 7; fault 6; fault 5; fault 4; and 4 more"},
		"capped names": {Names(many), "fault 0, fault 1, fault 2, fault 3, fault 4 and 4 more"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A text of characters of several bytes is cut between two of them.
func TestShorten(t *testing.T) {
	for length := maxLength - 5; length < maxLength+5; length++ {
		for _, character := range []string{"a", "ä", "節", "🦀"} {
			text := strings.Repeat("x", length%4) + strings.Repeat(character, length/len(character))

			got := Shorten(text)
			if len(got) > maxLength || !utf8.ValidString(got) {
				t.Errorf("%d bytes of %s: %d bytes, valid: %v", len(text), character, len(got), utf8.ValidString(got))
			}

			if len(text) <= maxLength && got != text {
				t.Errorf("a text of %d bytes was cut", len(text))
			}
		}
	}
}

func TestShortenTo(t *testing.T) {
	for text, want := range map[string]string{"short": "short", "longer": "lo...", "äöü": "ä..."} {
		if got := ShortenTo(text, 5); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// One fault on many machines is told once, whatever the order in which it was found.
func TestFindings(t *testing.T) {
	var forth, back Findings

	add := func(f *Findings, i int) {
		f.Add(fmt.Sprintf("Machine w-%d", i), "does not render")

		if i%2 == 0 {
			f.Add(fmt.Sprintf("Machine w-%d", i), "has no disk")
		}
	}

	for i := range 8 {
		add(&forth, i)
		add(&back, 7-i)
	}

	want := "Machine w-0, Machine w-1, Machine w-2, Machine w-3, Machine w-4 and 3 more: does not render; " +
		"Machine w-0, Machine w-2, Machine w-4, Machine w-6: has no disk"
	for _, got := range []string{forth.String(), back.String()} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}

	var none Findings
	if !none.Empty() || none.String() != "" || forth.Empty() {
		t.Error("emptiness is told wrong")
	}
}

// However much is found, and however long the words and names are, a condition has room for it.
func TestFindingsFit(t *testing.T) {
	var f Findings

	for i := range 300 {
		f.Add("Machine "+strings.Repeat("n", 253)+fmt.Sprint(i), strings.Repeat("節", 5000)+fmt.Sprint(i%20))
	}

	if got := f.String(); len(got) > 32768 || !utf8.ValidString(got) {
		t.Errorf("%d bytes, valid: %v", len(got), utf8.ValidString(got))
	}
}

// A terminal does not obey what a user has named.
func TestPrintable(t *testing.T) {
	for text, want := range map[string][2]string{
		"plain, and Ä":          {"plain, and Ä", "plain, and Ä"},
		"a\x7fb\u0085\x1b[31mc": {`a\u007fb\u0085\u001b[31mc`, `a\u007fb\u0085\u001b[31mc`},
		"a\u202eb\u2028c":       {`a\u202eb\u2028c`, `a\u202eb\u2028c`},
		"two\n\tlines":          {"two\n\tlines", `two\n` + "\tlines"},
	} {
		if got := [2]string{Printable(text), InLine(text)}; got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
