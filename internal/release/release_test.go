// SPDX-License-Identifier: Apache-2.0

package release

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var root = filepath.Join("..", "..")

// Only versions that clusterctl takes are built, and each refusal says what to do.
func TestVersion(t *testing.T) {
	metadata, err := os.ReadFile(filepath.Join(root, MetadataFile))
	if err != nil {
		t.Fatal(err)
	}

	tests := map[string]struct{ version, want string }{
		"release":        {"v0.1.0", ""},
		"pre-release":    {"v0.1.1-rc.1", ""},
		"without a v":    {"0.1.0", `version "0.1.0": clusterctl takes semantic versions with a v in front, for instance v0.1.0`},
		"a commit":       {"dbc0e4d", `version "dbc0e4d": clusterctl takes semantic versions with a v in front, for instance v0.1.0`},
		"none":           {"", `version "": clusterctl takes semantic versions with a v in front, for instance v0.1.0`},
		"unknown series": {"v7.3.0", "version v7.3.0: metadata.yaml has no releaseSeries with major 7 and minor 3: add it"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := checkVersion(test.version, metadata); err != nil {
				got = err.Error()
			}

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A release needs the name of a registry, before anything is written.
func TestNoRegistry(t *testing.T) {
	output := filepath.Join(t.TempDir(), "out")

	err := Write(t.Context(), Options{Root: root, Version: "v0.1.0", Output: output})
	if err == nil || !strings.HasPrefix(err.Error(), "no registry: ") {
		t.Errorf("error: %v", err)
	}

	if _, err := os.Stat(output); !os.IsNotExist(err) {
		t.Errorf("something was written: %v", err)
	}
}

// The files of a release have its images and fit their checksums; a repository keeps its other versions.
func TestFiles(t *testing.T) {
	output := t.TempDir()
	options := Options{Root: root, Version: "v0.1.0", Registry: "registry.example.com/ichor", Output: filepath.Join(output, "release")}

	if err := Write(t.Context(), options); err != nil {
		t.Fatal(err)
	}

	for file, image := range map[string]string{
		"bootstrap-components.yaml": "ichor-bootstrap-manager", "control-plane-components.yaml": "ichor-controlplane-manager",
	} {
		components := read(t, options.Output, file)
		if !strings.Contains(components, "image: registry.example.com/ichor/"+image+":v0.1.0\n") || strings.Contains(components, "controller:latest") {
			t.Errorf("%s does not have the image of the release", file)
		}
	}

	for _, template := range []string{
		"cluster-template.yaml", "cluster-template-topology.yaml", "clusterclass-ichor.yaml",
		"cluster-template-metal3.yaml", "cluster-template-proxmox.yaml", "cluster-template-vsphere.yaml",
	} {
		if diff := cmp.Diff(read(t, root, "templates", template), read(t, options.Output, template)); diff != "" {
			t.Errorf("%s: %s", template, diff)
		}
	}

	if _, err := os.Stat(filepath.Join(options.Output, "infrastructure-components.yaml")); !os.IsNotExist(err) {
		t.Errorf("a release has the simulated provider: %v", err)
	}

	checkSums(t, options.Output)

	options.Output = filepath.Join(output, "repository")
	for _, options.Version = range []string{"v0.1.0", "v0.1.1"} {
		if err := WriteRepository(t.Context(), options); err != nil {
			t.Fatal(err)
		}
	}

	for _, version := range []string{"v0.1.0", "v0.1.1"} {
		for label, image := range map[string]string{"bootstrap-ichor": "ichor-bootstrap-manager", "control-plane-ichor": "ichor-controlplane-manager"} {
			file := strings.TrimSuffix(label, "-ichor") + "-components.yaml"
			if got := read(t, options.Output, label, version, file); !strings.Contains(got, image+":"+version+"\n") {
				t.Errorf("the repository does not have version %s of %s", version, label)
			}
		}

		// clusterctl looks for templates with the infrastructure provider.
		read(t, options.Output, "infrastructure-sim", version, "cluster-template.yaml")
		read(t, options.Output, "infrastructure-sim", version, "clusterclass-ichor.yaml")

		if _, err := os.Stat(filepath.Join(options.Output, "infrastructure-sim", version, "cluster-template-metal3.yaml")); !os.IsNotExist(err) {
			t.Errorf("the simulated provider has a template for another: %v", err)
		}
	}

	entries, err := ReadConfig(filepath.Join(options.Output, ConfigFile))
	if err != nil {
		t.Fatal(err)
	}

	url := func(label, file string) string { return filepath.Join(options.Output, label, "latest", file) }
	want := []Entry{
		{Name: "ichor", Type: "BootstrapProvider", URL: url("bootstrap-ichor", "bootstrap-components.yaml")},
		{Name: "ichor", Type: "ControlPlaneProvider", URL: url("control-plane-ichor", "control-plane-components.yaml")},
		{Name: "sim", Type: "InfrastructureProvider", URL: url("infrastructure-sim", "infrastructure-components.yaml")},
	}

	if diff := cmp.Diff(want, entries); diff != "" {
		t.Error(diff)
	}
}

// checkSums holds the checksums to the files that lie beside them, each of them and no other, in the form that sha256sum reads.
func checkSums(t *testing.T, directory string) {
	t.Helper()

	files, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}

	var want strings.Builder

	for _, each := range files {
		if each.Name() != checksumsFile {
			sum := sha256.Sum256([]byte(read(t, directory, each.Name())))
			want.WriteString(hex.EncodeToString(sum[:]) + "  " + each.Name() + "\n")
		}
	}

	if len(files) < 4 {
		t.Errorf("the release has %d files only", len(files))
	}

	if diff := cmp.Diff(want.String(), read(t, directory, checksumsFile)); diff != "" {
		t.Error(diff)
	}
}

func read(t *testing.T, elements ...string) string {
	t.Helper()

	content, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}

	return string(content)
}
