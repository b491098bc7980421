// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		page string
		want []string
	}{
		"file":                         {page: "see [it](docs/a.md)"},
		"directory":                    {page: "see [it](docs)"},
		"file with title":              {page: `see [it](docs/a.md "the page")`},
		"heading elsewhere":            {page: "see [it](docs/a.md#two-words)"},
		"repeated heading":             {page: "see [it](docs/a.md#two-words-1)"},
		"heading here":                 {page: "# What's `new`?\nsee [it](#whats-new)"},
		"web":                          {page: "see [it](https://example.com/nothing)"},
		"code span":                    {page: "write `[it](nowhere.md)`"},
		"code fence":                   {page: "```\n[it](nowhere.md)\n# No heading\n```"},
		"no file":                      {page: "\nsee [it](docs/b.md)", want: []string{`README.md:2: link "docs/b.md": no such file or directory`}},
		"no heading":                   {page: "see [it](docs/a.md#three)", want: []string{`README.md:1: link "docs/a.md#three": docs/a.md has no heading with that anchor`}},
		"heading in a fence":           {page: "```\n# Gone\n```\n[it](#gone)", want: []string{`README.md:4: link "#gone": README.md has no heading with that anchor`}},
		"outside":                      {page: "see [it](../x.md)", want: []string{`README.md:1: link "../x.md": leaves the repository`}},
		"absolute":                     {page: "see [it](/docs/a.md)", want: []string{`README.md:1: link "/docs/a.md": starts at the root of the host that shows the page: make it relative`}},
		"second of two on a line":      {page: "[a](docs/a.md) [b](b.md)", want: []string{`README.md:1: link "b.md": no such file or directory`}},
		"image":                        {page: "![a](a.svg)", want: []string{`README.md:1: link "a.svg": no such file or directory`}},
		"link after a closed fence":    {page: "```\n```\n[b](b.md)", want: []string{`README.md:3: link "b.md": no such file or directory`}},
		"escaped name of a known file": {page: "[a](docs/a%2Emd)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := check(fstest.MapFS{
				"README.md":        {Data: []byte(tc.page)},
				"docs/a.md":        {Data: []byte("# Two words\n[back](../README.md)\n## Two words\n")},
				"bin/x.md":         {Data: []byte("[skipped](nowhere.md)")},
				"x/testdata/y.md":  {Data: []byte("[skipped](nowhere.md)")},
				".hidden/other.md": {Data: []byte("[skipped](nowhere.md)")},
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("check (-want +got):\n%s", diff)
			}
		})
	}
}
