// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// CacheEnv names the environment variable that moves the cache out of the repository, for instance to share it between
// checkouts.
const CacheEnv = "ICHOR_TEST_TOOLS"

// modulePath identifies the repository's root among the directories above the working directory.
const modulePath = "github.com/maesh-dev/ichor"

// A Builder makes tools and keeps them in a cache. Several builders, in one process or in many, may share a cache.
type Builder struct {
	// Sources is the directory that holds the nested modules.
	Sources string

	// Cache is the directory for what was built.
	Cache string

	// Progress receives a line when a build starts, now and then while it runs, and when it ends. Nothing is written
	// for a tool that is there already.
	Progress io.Writer
}

// NewBuilder returns a builder for the repository that holds the working directory. The cache is the directory in the
// environment variable ICHOR_TEST_TOOLS, or bin/test-tools in the repository.
func NewBuilder(progress io.Writer) (*Builder, error) {
	root, err := RepositoryRoot()
	if err != nil {
		return nil, err
	}
	cache := os.Getenv(CacheEnv)
	if cache == "" {
		cache = filepath.Join(root, "bin", "test-tools")
	}
	cache, err = filepath.Abs(cache)
	if err != nil {
		return nil, fmt.Errorf("test tools: cache %s: %w", cache, err)
	}
	return &Builder{Sources: filepath.Join(root, "test", "tools"), Cache: cache, Progress: progress}, nil
}

// Path returns the absolute path of the named tool, which is one of this package's constants, and builds it when it is
// not there. Progress goes to the standard error output. The error tells what could not be built and why.
func Path(ctx context.Context, name string) (string, error) {
	b, err := NewBuilder(os.Stderr)
	if err != nil {
		return "", err
	}
	return b.Path(ctx, name)
}

// Version returns the version of a tool, for instance v1.14.2, without building it.
func Version(name string) (string, error) {
	b, err := NewBuilder(os.Stderr)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(catalog, func(t tool) bool { return t.name == name })
	if i < 0 {
		return "", fmt.Errorf("test tool %q: unknown, use one of %s", name, strings.Join(Names(), ", "))
	}
	id, err := b.identify(catalog[i])
	if err != nil {
		return "", fmt.Errorf("test tool %s: %w", name, err)
	}
	return id.version, nil
}

// Names lists every tool, in the order in which they are best built.
func Names() []string {
	names := make([]string, 0, len(catalog))
	for _, t := range catalog {
		names = append(names, t.name)
	}
	return names
}

// Path is like the function Path.
func (b *Builder) Path(ctx context.Context, name string) (string, error) {
	i := slices.IndexFunc(catalog, func(t tool) bool { return t.name == name })
	if i < 0 {
		return "", fmt.Errorf("test tool %q: unknown, use one of %s", name, strings.Join(Names(), ", "))
	}
	t := catalog[i]
	id, err := b.identify(t)
	if err != nil {
		return "", fmt.Errorf("test tool %s: %w", name, err)
	}
	path := filepath.Join(b.Cache, id.directory(), t.name)
	if isFile(path) {
		return path, nil
	}
	if err := b.build(ctx, t, id, path); err != nil {
		return "", fmt.Errorf("test tool %s %s: %w", name, id.version, err)
	}
	return path, nil
}

// build makes one tool under a lock, so that two processes that want it at the same time build it once.
func (b *Builder) build(ctx context.Context, t tool, id identity, path string) error {
	needs := map[string]string{}
	for _, name := range t.needs {
		p, err := b.Path(ctx, name)
		if err != nil {
			return err
		}
		needs[name] = p
	}

	if err := os.MkdirAll(b.Cache, 0o755); err != nil {
		return err
	}
	unlock, err := lockFile(ctx, filepath.Join(b.Cache, "."+t.name+".lock"), func() {
		b.printf("waiting for another process that builds %s\n", t.name)
	})
	if err != nil {
		return err
	}
	defer unlock()
	if isFile(path) {
		return nil
	}

	if err := b.removeLeftovers(t); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(b.Cache, leftoverPrefix(t)+"*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary) //nolint:errcheck // A leftover is removed before the next build of this tool.
	if err := os.Chmod(temporary, 0o755); err != nil {
		return err
	}

	j := job{
		ctx: ctx, tool: t, identity: id, needs: needs,
		moduleDir: filepath.Join(b.Sources, t.module),
		output:    filepath.Join(temporary, t.name),
	}
	start := time.Now()
	stop := b.showProgress(t, id, start)
	err = j.run()
	stop()
	if err != nil {
		return err
	}
	if err := os.Rename(temporary, filepath.Dir(path)); err != nil {
		return err
	}
	b.printf("built %s %s in %s\n", t.name, id.version, time.Since(start).Round(time.Second))
	return nil
}

// removeLeftovers deletes what builds of the same tool left that were killed. The caller holds the tool's lock, so none
// of them is running.
func (b *Builder) removeLeftovers(t tool) error {
	leftovers, err := filepath.Glob(filepath.Join(b.Cache, leftoverPrefix(t)+"*"))
	if err != nil {
		return err
	}
	for _, l := range leftovers {
		if err := os.RemoveAll(l); err != nil {
			return err
		}
	}
	return nil
}

func leftoverPrefix(t tool) string {
	return "." + t.name + ".partial-"
}

// progressInterval is long enough not to fill a CI log and short enough to show that a build of minutes goes on.
const progressInterval = 15 * time.Second

func (b *Builder) showProgress(t tool, id identity, start time.Time) (stop func()) {
	b.printf("building %s %s ...\n", t.name, id.version)
	done := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(progressInterval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				b.printf("building %s %s ... %s\n", t.name, id.version, time.Since(start).Round(time.Second))
			}
		}
	}()
	return func() {
		close(done)
		<-stopped
	}
}

func (b *Builder) printf(format string, args ...any) {
	if b.Progress != nil {
		fmt.Fprintf(b.Progress, format, args...)
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// RepositoryRoot walks up from the working directory. The path of this source file would not do, since a build with
// -trimpath does not know it.
func RepositoryRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("test tools: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		switch {
		case err == nil && bytes.HasPrefix(content, []byte("module "+modulePath+"\n")):
			return dir, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("test tools: %w", err)
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("test tools: %s is not inside a checkout of %s: run from within the repository",
				start, modulePath)
		}
	}
}
