// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// identity is what decides the content of a built file.
type identity struct {
	name    string
	version string
	sum     string
}

func (id identity) directory() string {
	return fmt.Sprintf("%s-%s-%s", id.name, id.version, id.sum)
}

// identify reads the version from the nested module and sums up everything that the build depends on. The files of the
// dependencies themselves need no look: go.sum pins them.
func (b *Builder) identify(t tool) (identity, error) {
	dir := filepath.Join(b.Sources, t.module)
	version, err := requiredVersion(filepath.Join(dir, t.goModFile()), t.versionOf)
	if err != nil {
		return identity{}, err
	}

	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	fmt.Fprintln(h, t.name, t.goModFile(), t.mainPackage)
	fmt.Fprintln(h, goBuildEnvironment, buildFlags(t, version))
	if err := hashDirectory(h, dir); err != nil {
		return identity{}, err
	}
	for _, name := range t.needs {
		for _, needed := range catalog {
			if needed.name != name {
				continue
			}
			id, err := b.identify(needed)
			if err != nil {
				return identity{}, err
			}
			fmt.Fprintln(h, id.directory())
		}
	}
	return identity{name: t.name, version: version, sum: hex.EncodeToString(h.Sum(nil))[:12]}, nil
}

func hashDirectory(h hash.Hash, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%s %d\n", e.Name(), len(content))
		h.Write(content)
	}
	return nil
}

// requiredVersion finds the version of a module in a go.mod file. A pattern does for files that this repository writes
// itself, and keeps the package free of dependencies.
func requiredVersion(goMod, module string) (string, error) {
	content, err := os.ReadFile(goMod)
	if err != nil {
		return "", err
	}
	pattern := regexp.MustCompile(`(?m)^(?:require\s+|\s+)` + regexp.QuoteMeta(module) + `\s+(v\S+)`)
	match := pattern.FindSubmatch(content)
	if match == nil {
		return "", fmt.Errorf("%s: no requirement of %s, which gives the tool its version", goMod, module)
	}
	return string(match[1]), nil
}
