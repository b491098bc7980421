// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeCatalog replaces the catalog by one small program, which builds in a moment and without a network: its module
// requires none but itself, which gives the tool a version.
func fakeCatalog(t *testing.T) *Builder {
	t.Helper()
	sources := t.TempDir()
	write(t, filepath.Join(sources, "small", "go.mod"), "module example.org/small\n\ngo 1.26.0\n\nrequire example.org/small v1.2.3\n")
	write(t, filepath.Join(sources, "small", "main.go"), "package main\n\nvar gitVersion string\n\nfunc main() { print(gitVersion) }\n")
	previous := catalog
	catalog = []tool{{
		name: "small", module: "small", versionOf: "example.org/small", mainPackage: ".", versionPackages: []string{"main"},
	}}
	t.Cleanup(func() { catalog = previous })
	return &Builder{Sources: sources, Cache: filepath.Join(t.TempDir(), "cache"), Progress: &bytes.Buffer{}}
}

func TestBuildOnceAndKeep(t *testing.T) {
	b := fakeCatalog(t)
	path := mustPath(t, b, "small")
	if output := run(t, path); output != "v1.2.3" {
		t.Errorf("the program reports version %q, want v1.2.3", output)
	}
	first := modified(t, path)

	b.Progress.(*bytes.Buffer).Reset()
	if again := mustPath(t, b, "small"); again != path || modified(t, again) != first {
		t.Errorf("the second call built %s again", again)
	}
	if said := b.Progress.(*bytes.Buffer).String(); said != "" {
		t.Errorf("a call that builds nothing says %q, want nothing", said)
	}

	write(t, filepath.Join(b.Sources, "small", "main.go"), "package main\n\nfunc main() { print(\"changed\") }\n")
	changed := mustPath(t, b, "small")
	if changed == path {
		t.Fatal("a changed source did not change the path")
	}
	if output := run(t, changed); output != "changed" {
		t.Errorf("the changed program prints %q", output)
	}
	if !isFile(path) {
		t.Error("the earlier build is gone, although another checkout may use it")
	}
}

func TestConcurrentBuildsShareOneResult(t *testing.T) {
	b := fakeCatalog(t)
	var progress lockedBuffer
	b.Progress = &progress
	paths := make([]string, 4)
	var group sync.WaitGroup
	for i := range paths {
		group.Go(func() {
			path, err := b.Path(t.Context(), "small")
			if err != nil {
				t.Error(err)
			}
			paths[i] = path
		})
	}
	group.Wait()
	for _, p := range paths {
		if p != paths[0] {
			t.Errorf("different paths: %v", paths)
		}
	}
	if n := strings.Count(progress.String(), "built small"); n != 1 {
		t.Errorf("built %d times, want once:\n%s", n, progress.String())
	}
}

func TestFailedBuildLeavesNothing(t *testing.T) {
	b := fakeCatalog(t)
	write(t, filepath.Join(b.Sources, "small", "main.go"), "package main\n\nfunc main() { missing() }\n")
	_, err := b.Path(t.Context(), "small")
	if err == nil || !strings.Contains(err.Error(), "test tool small v1.2.3") || !strings.Contains(err.Error(), "undefined: missing") {
		t.Errorf("error %v, want the tool and what the compiler said", err)
	}
	if left := entries(t, b.Cache); len(left) != 1 || left[0] != ".small.lock" {
		t.Errorf("the cache holds %v, want the lock alone", left)
	}
}

func TestCleansUpAfterKilledBuild(t *testing.T) {
	b := fakeCatalog(t)
	leftover := filepath.Join(b.Cache, leftoverPrefix(catalog[0])+"123")
	write(t, filepath.Join(leftover, "small"), "half a program")
	mustPath(t, b, "small")
	if _, err := os.Stat(leftover); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", leftover, err)
	}
}

func TestWaitingForLockEndsWithContext(t *testing.T) {
	b := fakeCatalog(t)
	if err := os.MkdirAll(b.Cache, 0o755); err != nil {
		t.Fatal(err)
	}
	unlock, err := lockFile(t.Context(), filepath.Join(b.Cache, ".small.lock"), func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	if _, err := b.Path(ctx, "small"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want a deadline that passed", err)
	}
	if said := b.Progress.(*bytes.Buffer).String(); !strings.Contains(said, "waiting for another process that builds small") {
		t.Errorf("progress %q does not tell what is waited for", said)
	}
}

func TestUnknownTool(t *testing.T) {
	_, err := Path(t.Context(), "kube-scheduler")
	if err == nil || !strings.Contains(err.Error(), `"kube-scheduler"`) || !strings.Contains(err.Error(), Etcd) {
		t.Errorf("error %v, want the name and the names that can be asked for", err)
	}
}

// TestCatalog holds every row against its nested module, without building it.
func TestCatalog(t *testing.T) {
	b, err := NewBuilder(nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, row := range catalog {
		t.Run(row.name, func(t *testing.T) {
			id, err := b.identify(row)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(id.version, "v") || len(id.sum) != 12 {
				t.Errorf("identity %+v", id)
			}
			if (row.mainPackage == "") == (row.make == nil) {
				t.Error("exactly one of mainPackage and make must be set")
			}
			if seen[id.directory()] {
				t.Errorf("directory %s is another row's too", id.directory())
			}
			seen[id.directory()] = true
		})
	}
}

func mustPath(t *testing.T, b *Builder, name string) string {
	t.Helper()
	path, err := b.Path(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
