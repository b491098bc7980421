// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/maesh-dev/ichor/internal/codegen/emit"
	"github.com/maesh-dev/ichor/internal/codegen/history"
	"github.com/maesh-dev/ichor/internal/codegen/load"
	"github.com/maesh-dev/ichor/internal/codegen/model"
	"github.com/maesh-dev/ichor/internal/codegen/reference"
	"github.com/maesh-dev/ichor/internal/codegen/tables"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// What is written, from the repository's root.
var (
	documentsDir = filepath.Join("api", "machineconfig", "v1alpha1")
	versionDir   = filepath.Join("internal", "version")
	referenceDir = filepath.Join("docs", "reference")
)

func run(ctx context.Context) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}

	since, err := history.Make(ctx, tables.Releases(root), tables.FormChanges())
	if err != nil {
		return err
	}

	decisions := tables.Talos()
	decisions.Since = since.Fields()

	api, err := build(ctx, tables.Machinery(root), decisions)
	if err != nil {
		return err
	}

	files, err := emit.Files(api, filepath.Base(documentsDir))
	if err != nil {
		return err
	}

	if _, err := os.Stdout.Write(emit.SecretReport(api)); err != nil {
		return fmt.Errorf("print the secret report: %w", err)
	}

	pages, err := referencePages(api, since, decisions)
	if err != nil {
		return err
	}

	versions, err := since.Source(filepath.Base(versionDir))
	if err != nil {
		return err
	}

	return errors.Join(
		write(filepath.Join(root, documentsDir), emit.Prefix+"*.go", files),
		write(filepath.Join(root, referenceDir), "*.md", pages),
		write(filepath.Join(root, versionDir), emit.Prefix+"*.go", map[string][]byte{emit.Prefix + "tables.go": versions}),
	)
}

// generate goes through the three steps.
func generate(ctx context.Context, source load.Source, decisions model.Tables, goPackage string) (map[string][]byte, error) {
	api, err := build(ctx, source, decisions)
	if err != nil {
		return nil, err
	}

	return emit.Files(api, goPackage)
}

func build(ctx context.Context, source load.Source, decisions model.Tables) (*model.API, error) {
	catalog, err := load.Load(ctx, source)
	if err != nil {
		return nil, err
	}

	return model.Build(catalog, decisions)
}

func referencePages(api *model.API, since *history.Table, decisions model.Tables) (map[string][]byte, error) {
	examples, err := reference.Examples()
	if err != nil {
		return nil, err
	}

	return reference.Pages(reference.Input{
		API: api, Since: since, Denied: decisions.Denied, Later: decisions.Later, Wants: tables.Wants(), Examples: examples,
	})
}

func moduleRoot(ctx context.Context) (string, error) {
	mod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module's root: %w", err)
	}

	return filepath.Dir(strings.TrimSpace(string(mod))), nil
}

// write brings what matches the pattern in a folder in line with files: it writes what differs and removes what earlier runs left.
func write(dir, pattern string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}

	old, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return fmt.Errorf("look for stale files: %w", err)
	}

	for _, path := range old {
		name := filepath.Base(path)
		if _, kept := files[name]; kept || name == emit.DeepCopyFile {
			continue
		}

		if err := os.Remove(path); err != nil {
			return fmt.Errorf("remove a stale file: %w", err)
		}
	}

	for name, source := range files {
		path := filepath.Join(dir, name)

		have, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("compare with what is there: %w", err)
		}

		if bytes.Equal(have, source) {
			continue // an unchanged file keeps its time, so that builds stay cached
		}

		if err := os.WriteFile(path, source, 0o644); err != nil {
			return fmt.Errorf("write generated source: %w", err)
		}
	}

	return nil
}
