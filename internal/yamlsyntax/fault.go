// SPDX-License-Identifier: Apache-2.0

package yamlsyntax

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Error is where and why a text is not YAML. It shows nothing of the text, which may hold secrets.
type Error struct {
	// Line of the fault in the text, from 1; 0 when the parser does not say.
	Line int

	// Message says what is wrong, and what to do where that is known.
	Message string
}

// Error is the message.
func (f *Error) Error() string { return f.Message }

// Explain makes an Error of what the parser said of the text.
func Explain(data []byte, err error) *Error {
	fault := &Error{Message: "not valid YAML or JSON: " + err.Error()}

	detail, ok := errors.AsType[*yaml.LoadError](err)
	if ok {
		fault.Line = detail.Mark.Line

		// The name of an anchor may be a password that begins with *.
		words, _, _ := strings.Cut(detail.Message, " '")
		if !strings.HasPrefix(words, "unknown anchor") {
			words = detail.Message
		}

		fault.Message = "not valid YAML or JSON: " + words

		if unclosed(detail) {
			fault.Line = detail.ContextMark.Line
		} else if detail.Mark.Column > 0 {
			fault.Message += fmt.Sprintf(" (column %d)", detail.Mark.Column)
		}
	}

	if line, advice := adviceFor(data, detail); advice != "" {
		fault.Message += ": " + advice
		if line > 0 {
			fault.Line = line
		}
	}

	return fault
}

// unclosed tells a quote that is opened and never closed: where the text ends is of no interest then.
func unclosed(detail *yaml.LoadError) bool {
	return strings.Contains(detail.ContextMsg, "quoted scalar") && detail.ContextMark.Line > 0 && strings.Contains(detail.Message, "end of stream")
}

var (
	templateWords = regexp.MustCompile(`\{\{|\{%`)
	variable      = regexp.MustCompile(`\$\{[A-Za-z_]`)
)

// adviceFor explains what the parser's own words do not, and gives the line that it is about where the parser means another.
func adviceFor(data []byte, detail *yaml.LoadError) (int, string) {
	if line := tabbed(data); line > 0 && (detail == nil || strings.Contains(detail.Message, "cannot start any token") || strings.Contains(detail.Message, "tab character")) {
		return line, "YAML is indented with spaces, and a line here begins with a tab"
	}

	if advice := Leftovers(data); advice != "" {
		return 0, advice
	}

	if detail == nil {
		return 0, ""
	}

	for _, row := range advices {
		if strings.Contains(detail.Message, row.message) && strings.Contains(detail.ContextMsg, row.context) {
			return 0, row.advice
		}
	}

	return 0, ""
}

// Leftovers says what to do about a text that is a template still. It is empty for one that is none.
func Leftovers(data []byte) string {
	switch {
	case templateWords.Match(data):
		return "the document has braces of a template, {{ }} or {% %}: fill the template in first"
	case variable.Match(data):
		return "the document has variables like ${NAME}: fill them in first, as clusterctl generate does"
	default:
		return ""
	}
}

// advices are for words of the parser, the first that fits.
var advices = []struct{ message, context, advice string }{
	{"end of stream", "quoted scalar", "a quote is opened here and never closed"},
	{"did not find expected key", "block mapping", "the indentation is broken: the fields of one map begin in the same column"},
	{"did not find expected '-'", "", "the indentation is broken: the items of one list begin in the same column"},
	{"mapping values are not allowed", "", "a value with a colon and a space in it needs quotes, or the line before has another indentation"},
	{"unknown anchor", "", "an alias (*name) stands for an anchor (&name) in the same document, before it; for a text that begins with * use quotes"},
	{"did not find expected ',' or", "", "a bracket or brace is opened and not closed, or a comma is missing"},
	{"did not find expected node content", "", "a bracket or brace is opened and not closed, or a value is missing"},
	{"cannot start any token", "", "a value that begins with @, `, % or a tab needs quotes"},
	{"unknown escape character", "", `in double quotes \ begins an escape: use single quotes, or write \\`},
}

// tabbed gives the first line whose indentation has a tab, 0 when none has.
func tabbed(data []byte) int {
	number := 0

	for line := range bytes.Lines(data) {
		number++

		if indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]; bytes.ContainsRune(indent, '\t') {
			return number
		}
	}

	return 0
}
