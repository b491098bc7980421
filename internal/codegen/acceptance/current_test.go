// SPDX-License-Identifier: Apache-2.0

package acceptance_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/maesh-dev/ichor/internal/codegen/emit"
)

// TestGeneratedFilesAreCurrent: what is committed is what the generator makes.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	api := buildModel(t)

	files, err := emit.Files(api, "v1alpha1")
	if err != nil {
		t.Fatalf("emit: %v", err)
	}

	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(moduleDir(t), "api", "machineconfig", "v1alpha1", name))
		if err != nil {
			t.Fatalf("%s: %v; run make generate", name, err)
		}

		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is stale; run make generate (-want +got):\n%s", name, diff)
		}
	}

	pages := referencePages(t, api)

	for name, want := range pages {
		got, err := os.ReadFile(filepath.Join(moduleDir(t), "docs", "reference", name))
		if string(want) != string(got) {
			t.Errorf("docs/reference/%s is stale (%v); run make generate", name, err)
		}
	}

	present, err := filepath.Glob(filepath.Join(moduleDir(t), "docs", "reference", "*.md"))
	if err != nil || len(present) != len(pages) {
		t.Errorf("docs/reference has %d pages, want %d (%v); run make generate", len(present), len(pages), err)
	}

	want, err := firstVersions(t).Source("version")
	if err != nil {
		t.Fatalf("tables of first versions: %v", err)
	}

	got, err := os.ReadFile(filepath.Join(moduleDir(t), "internal", "version", "zz_generated.tables.go"))
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the tables of first versions are stale (%v); run make generate (-want +got):\n%s", err, diff)
	}
}
