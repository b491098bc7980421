// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

var (
	fence   = regexp.MustCompile("^\\s*(```|~~~)")
	code    = regexp.MustCompile("`[^`]*`")
	link    = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)>?[^)]*\)`)
	heading = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
)

// check gives one line, "file:line: what is wrong", for each link that leads nowhere.
func check(root fs.FS) ([]string, error) {
	var broken []string
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && (strings.HasPrefix(d.Name(), ".") || slices.Contains(skipped, d.Name())) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".md" {
			return nil
		}
		lines, err := prose(root, name)
		if err != nil {
			return err
		}
		for i, line := range lines {
			for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(line, ""), -1) {
				if err := resolve(root, name, m[1]); err != nil {
					broken = append(broken, fmt.Sprintf("%s:%d: link %q: %v", name, i+1, m[1], err))
				}
			}
		}
		return nil
	})
	return broken, err
}

// skipped are directories whose files are built or belong to tests.
var skipped = []string{"bin", "node_modules", "testdata", "_artifacts"}

// prose gives the lines of a file with those inside code fences emptied, so that line numbers stay.
func prose(root fs.FS, name string) ([]string, error) {
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(data), "\n")
	fenced := false
	for i, line := range lines {
		if fence.MatchString(line) {
			fenced = !fenced
			lines[i] = ""
		} else if fenced {
			lines[i] = ""
		}
	}
	return lines, nil
}

func resolve(root fs.FS, from, target string) error {
	u, err := url.Parse(target)
	if err != nil {
		return err
	}
	if u.Scheme != "" || u.Host != "" {
		return nil
	}
	to := from
	if u.Path != "" {
		if strings.HasPrefix(u.Path, "/") {
			return errors.New("starts at the root of the host that shows the page: make it relative")
		}
		to = path.Join(path.Dir(from), u.Path)
	}
	if !fs.ValidPath(to) {
		return errors.New("leaves the repository")
	}
	if _, err := fs.Stat(root, to); err != nil {
		return errors.New("no such file or directory")
	}
	if u.Fragment == "" || path.Ext(to) != ".md" {
		return nil
	}
	lines, err := prose(root, to)
	if err != nil {
		return err
	}
	if !slices.Contains(anchors(lines), u.Fragment) {
		return fmt.Errorf("%s has no heading with that anchor", to)
	}
	return nil
}

// anchors gives the fragment of each heading as the usual Markdown hosts make it: lower case, spaces as hyphens,
// punctuation dropped, "-1", "-2", ... after a repeated one.
func anchors(lines []string) []string {
	var all []string
	seen := map[string]int{}
	for _, line := range lines {
		m := heading.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			default:
				return -1
			}
		}, m[1])
		n := seen[slug]
		seen[slug]++
		if n > 0 {
			slug = fmt.Sprintf("%s-%d", slug, n)
		}
		all = append(all, slug)
	}
	return all
}
