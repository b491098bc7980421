// SPDX-License-Identifier: Apache-2.0

package yamlsyntax_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/maesh-dev/ichor/internal/yamlsyntax"
)

func TestExplain(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		text string
		want yamlsyntax.Error
	}{
		"a tab":                             {text: "machine:\n\ttype: worker\n", want: yamlsyntax.Error{Line: 2, Message: "not valid YAML or JSON: found character that cannot start any token (column 1): YAML is indented with spaces, and a line here begins with a tab"}},
		"a tab after a blank line with one": {text: "a: b\n\t\nc:\n\td: e\n", want: yamlsyntax.Error{Line: 2, Message: "not valid YAML or JSON: found a tab character that violates indentation (column 1): YAML is indented with spaces, and a line here begins with a tab"}},
		"a quote that is not closed":        {text: "a: 1\nb: \"off\nc: 2\n", want: yamlsyntax.Error{Line: 2, Message: "not valid YAML or JSON: found unexpected end of stream: a quote is opened here and never closed"}},
		"a line that slipped":               {text: "a:\n  - b: 1\n c:\n  - d: 1\n", want: yamlsyntax.Error{Line: 3, Message: "not valid YAML or JSON: did not find expected key (column 2): the indentation is broken: the fields of one map begin in the same column"}},
		"an item that slipped":              {text: "a:\n  - b\n   - c\n - d\n", want: yamlsyntax.Error{Line: 4, Message: "not valid YAML or JSON: did not find expected key (column 2): the indentation is broken: the fields of one map begin in the same column"}},
		"a colon":                           {text: "a:\n  - b: c=\"d\": e\n", want: yamlsyntax.Error{Line: 2, Message: "not valid YAML or JSON: mapping values are not allowed in this context (column 13): a value with a colon and a space in it needs quotes, or the line before has another indentation"}},
		"an alias without an anchor":        {text: "a: 1\nb: *c\n", want: yamlsyntax.Error{Line: 2, Message: "not valid YAML or JSON: unknown anchor (column 4): an alias (*name) stands for an anchor (&name) in the same document, before it; for a text that begins with * use quotes"}},
		"Jinja":                             {text: "a:\n{% if b %}\n  c: d\n", want: yamlsyntax.Error{Line: 2, Message: "not valid YAML or JSON: found character that cannot start any token (column 2): the document has braces of a template, {{ }} or {% %}: fill the template in first"}},
		"a variable":                        {text: "a: [${NAME}\nb: c\n", want: yamlsyntax.Error{Line: 1, Message: "not valid YAML or JSON: did not find expected ',' or ']' (column 6): the document has variables like ${NAME}: fill them in first, as clusterctl generate does"}},
		"a bracket":                         {text: "a: [b, c\nd: e\n", want: yamlsyntax.Error{Line: 2, Message: "not valid YAML or JSON: did not find expected ',' or ']' (column 2): a bracket or brace is opened and not closed, or a comma is missing"}},
		"a bracket at the end":              {text: "a: [\n", want: yamlsyntax.Error{Line: 2, Message: "not valid YAML or JSON: did not find expected node content (column 1): a bracket or brace is opened and not closed, or a value is missing"}},
		"an at sign":                        {text: "a: @b\n", want: yamlsyntax.Error{Line: 1, Message: "not valid YAML or JSON: found character that cannot start any token (column 4): a value that begins with @, `, % or a tab needs quotes"}},
		"an escape":                         {text: "a: \"\\q\"\n", want: yamlsyntax.Error{Line: 1, Message: `not valid YAML or JSON: found unknown escape character (column 5): in double quotes \ begins an escape: use single quotes, or write \\`}},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var node yaml.Node

			err := yaml.Unmarshal([]byte(test.text), &node)
			if err == nil {
				t.Fatal("want an error")
			}

			if diff := cmp.Diff(&test.want, yamlsyntax.Explain([]byte(test.text), err)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
