// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"slices"
	"strings"
)

// mistakes is how many letters of a name may be wrong.
const mistakes = 2

// Nearest gives the candidate that differs from the name in its case only, else the one with the fewest letters to add, drop or change,
// at most two and fewer than the name or the candidate has. Of two that are as near the first in the alphabet counts. It gives "" when
// none is near.
func Nearest(name string, candidates []string) string {
	best, least := "", mistakes+1

	for _, candidate := range slices.Sorted(slices.Values(candidates)) {
		if strings.EqualFold(candidate, name) {
			return candidate
		}

		if d := distance(candidate, name); d < least && d < min(len(candidate), len(name)) {
			best, least = candidate, d
		}
	}

	return best
}

// Longer gives the one candidate that ends with the name, or begins with it, as a word of its own: "bondMode" for "mode". It gives ""
// when there is none, or more than one.
func Longer(name string, candidates []string) string {
	if len(name) <= mistakes {
		return ""
	}

	capital := strings.ToUpper(name[:1]) + name[1:]
	found := ""

	for _, candidate := range candidates {
		rest, begins := strings.CutPrefix(candidate, name)
		if !strings.HasSuffix(candidate, capital) && (!begins || rest == "" || rest[0] < 'A' || rest[0] > 'Z') {
			continue
		}

		if found != "" {
			return ""
		}

		found = candidate
	}

	return found
}

// distance is the number of letters to add, drop or change.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}

	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1

		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}

			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}

	return row[len(b)]
}
