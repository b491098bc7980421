// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"

	"github.com/blang/semver/v4"
)

// Source says where the source of one release of machinery is found.
type Source struct {
	// Dir is a folder of the module whose build list decides the version and whose go.sum the checksum.
	Dir string
	// Modfile names another file than go.mod, in the form of the go command's flag. Empty for go.mod.
	Modfile string
	// Module is the path of the module that is read.
	Module string
}

// module is what the go command says of a module that it has fetched.
type module struct {
	Path, Version, Dir, Error string
}

// fetch puts the module's source into the module cache, if it is not there, and tells where it is.
func (s Source) fetch(ctx context.Context) (module, error) {
	args := []string{"mod", "download", "-json"}
	if s.Modfile != "" {
		args = append(args, "-modfile="+s.Modfile)
	}

	var out, errOut bytes.Buffer

	command := exec.CommandContext(ctx, "go", append(args, s.Module)...)
	command.Dir, command.Stdout, command.Stderr = s.Dir, &out, &errOut

	runErr := command.Run()

	var found module

	// A module that cannot be had is told about in the output too, in better words than by the exit status.
	if err := json.Unmarshal(out.Bytes(), &found); err == nil && found.Error != "" {
		return module{}, fmt.Errorf("module %s: %s", s.Module, found.Error)
	}

	if runErr != nil {
		return module{}, fmt.Errorf("module %s: %w: %s", s.Module, runErr, strings.TrimSpace(errOut.String()))
	}

	if found.Dir == "" {
		return module{}, fmt.Errorf("module %s: the go command does not say where its source is", s.Module)
	}

	return found, nil
}

// minorOf is the minor of a module's version, of which the major must be 1: the table counts minors alone.
func minorOf(m module) (int, error) {
	version, err := semver.Parse(strings.TrimPrefix(m.Version, "v"))
	if err != nil {
		return 0, fmt.Errorf("module %s: version %q: %w", m.Path, m.Version, err)
	}

	if version.Major != 1 {
		return 0, fmt.Errorf("module %s: version %s: the table of first versions knows minors of 1 only", m.Path, m.Version)
	}

	return int(version.Minor), nil //nolint:gosec // a minor is far below the limit
}
