// SPDX-License-Identifier: Apache-2.0

package expression_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"

	"github.com/maesh-dev/ichor/internal/expression"
)

func TestParse(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ text, want string }{
		"a disk":                               {`disk.transport == "nvme" && !system_disk && disk.size > 100u * GB`, ""},
		"one over a list":                      {`disk.symlinks.exists(s, s.startsWith("/dev/disk/by-id/"))`, ""},
		"four inside each other":               {nested(4, "true"), ""},
		"five inside each other":               {nested(5, "true"), "more than 4 of all, exists, filter and map stand inside each other: write it more simply"},
		"five in a list in a map":              {"{1: [" + nested(5, "true") + "]}.size() > 0", "more than 4 of all"},
		"one after the other":                  {strings.TrimSuffix(strings.Repeat("[1].all(x, true)&&", 100), "&&"), ""},
		"an unknown field":                     {"disk.sise > 1u", "undefined field 'sise'"},
		"not true or false":                    {"disk.size", "expression output type is uint, expected bool"},
		"half an expression":                   {"disk.size >", "Syntax error"},
		"nothing":                              {"", "Syntax error"},
		"as long as allowed":                   {"true" + strings.Repeat(" ", expression.MaxLength-4), ""},
		"a letter too many":                    {"true" + strings.Repeat(" ", expression.MaxLength-3), "the expression has 2049 letters, at most 2048 are allowed"},
		"nothing but wrong letters":            {strings.Repeat("@", 2000), "..."},
		"letters are counted, in any alphabet": {`"` + strings.Repeat("ü", 2000) + `" == ""`, ""},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := expression.ParseBoolean(test.text, celenv.DiskLocator())

			switch {
			case test.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.want != "" && err == nil:
				t.Error("accepted")
			case test.want != "" && !strings.Contains(err.Error(), test.want):
				t.Errorf("got %v, want %q in it", err, test.want)
			case err != nil && len(err.Error()) > 600:
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

// TestParseSelector refuses what selects nothing whatever there is, and no more.
func TestParseSelector(t *testing.T) {
	t.Parallel()

	const never = "is false whatever is looked at"

	for text, want := range map[string]string{
		`false`:                                                never,
		`disk.transport == "nvme" && false`:                    never,
		`"disk.transport" == "nvme"`:                           never,
		`!system_disk && "disk.rotational" == "yes"`:           never,
		`1 > 2 || !true`:                                       never,
		`disk.transport == "nvme" && disk.transport == "sata"`: never,
		`disk.transport == "nvme" && (!system_disk && "sata" == disk.transport)`:       never,
		`disk.size > 100u * GB && disk.size < 10u * GB`:                                never,
		`10u * GB >= disk.size && disk.size > 100u * GB`:                               never,
		`system_disk && !system_disk`:                                                  never,
		`disk.rotational && disk.rotational == false`:                                  never,
		`disk.transport in ["nvme", "sata"] && disk.transport == "usb"`:                never,
		`disk.model == "a" && disk.model != "a"`:                                       never,
		`(disk.model == "a" && disk.model == "b") || (system_disk && !system_disk)`:    never,
		`disk.transport == "nvme" && disk.transport != "sata"`:                         "",
		`disk.size > 10u * GB && disk.size < 100u * GB`:                                "",
		`disk.size >= 10u * GB && disk.size <= 10u * GB`:                               "",
		`disk.transport == "nvme" && (disk.model == "a" || disk.model == "b")`:         "",
		`(disk.model == "a" && disk.model == "b") || system_disk`:                      "",
		`!(disk.model == "a" && disk.model == "b")`:                                    "",
		`disk.transport != "nvme" && disk.transport != "sata" && !disk.rotational`:     "",
		`disk.transport in ["nvme", "sata"] && disk.transport == "sata"`:               "",
		`"/dev/disk/by-id/a" in disk.symlinks && "/dev/disk/by-id/b" in disk.symlinks`: "",
		`disk.serial.startsWith("a") && disk.serial.startsWith("b")`:                   "",
		`"nvme"`:                            `"\"nvme\"" is a value and no condition`,
		`/dev/sda`:                          `"/dev/sda" is a value and no condition`,
		`nvme`:                              `"nvme" is a value and no condition`,
		`disk.sise > 1u`:                    "undefined field 'sise'",
		`true`:                              "",
		`system_disk`:                       "",
		`false || system_disk`:              "",
		`disk.size > 10u * GB && true`:      "",
		`disk.symlinks.exists(s, s == "a")`: "",
		`disk.readonly == false`:            "",
		nested(4, "true"):                   "",
	} {
		_, err := expression.ParseSelector(text, celenv.DiskLocator())

		switch {
		case want == "" && err != nil:
			t.Errorf("%s: refused: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: got %v, want %q in it", text, err, want)
		}
	}
}

func TestParseDouble(t *testing.T) {
	t.Parallel()

	if _, err := expression.ParseDouble("1.0", celenv.OOMCgroupScoring()); err != nil {
		t.Error(err)
	}

	if _, err := expression.ParseDouble("true", celenv.OOMCgroupScoring()); err == nil {
		t.Error("a boolean is taken for a number")
	}
}

// What is made to be slow is refused or read in a time in which others do not notice. Every text is as long as is allowed.
func TestHostile(t *testing.T) {
	// Several times what the slowest takes, since tests share the machine; without bounds some of these take minutes.
	const (
		limit  = 2 * time.Second
		memory = 64 << 20
	)

	fill := func(unit string) string { return strings.Repeat(unit, expression.MaxLength/len(unit)) }

	for name, text := range map[string]string{
		"comprehensions":       nested(80, "true"),
		"maps":                 strings.Repeat("[1].map(x,", 80) + "true" + strings.Repeat(")", 80),
		"open parentheses":     fill("("),
		"open lists":           fill("["),
		"open maps":            fill("{"),
		"negations":            fill("!"),
		"choices":              fill("true?"),
		"fields":               "disk" + strings.Repeat(".a", 1000),
		"indexes":              "disk" + strings.Repeat("[0]", 600),
		"sums":                 fill("1+"),
		"alternatives":         strings.Repeat("true||", 300) + "true",
		"an open string":       "'" + strings.Repeat("a", 2000),
		"wrong letters":        fill("@#$"),
		"a list":               "[" + strings.Repeat("1,", 900) + "1].size()>1",
		"a map of lists":       "{" + strings.Repeat("1:[1],", 300) + "2:[2]}.size()>1",
		"regular expression":   "disk.model.matches('" + strings.Repeat("(a{1,1000}){1,1000}", 90) + "')",
		"regular expression 2": "disk.model.matches('" + strings.Repeat("(", 900) + strings.Repeat(")*", 500) + "')",
	} {
		var before, after runtime.MemStats

		runtime.ReadMemStats(&before)

		start := time.Now()
		_, err := expression.ParseBoolean(text, celenv.DiskLocator())
		elapsed := time.Since(start)

		runtime.ReadMemStats(&after)

		t.Logf("%s: %v, %d KiB, %.60v", name, elapsed.Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)>>10, err)

		if elapsed > limit {
			t.Errorf("%s takes %v", name, elapsed)
		}

		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > memory {
			t.Errorf("%s takes %d bytes", name, allocated)
		}
	}
}

func nested(depth int, inner string) string {
	return strings.Repeat("[1].all(x,", depth) + inner + strings.Repeat(")", depth)
}
