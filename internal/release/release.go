// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/yaml"
)

const (
	// MetadataFile tells clusterctl the contract of each series.
	MetadataFile = "metadata.yaml"

	// ConfigFile is clusterctl's configuration for a repository that WriteRepository has made.
	ConfigFile = "clusterctl.yaml"

	checksumsFile = "SHA256SUMS"

	templatesDirectory = "templates"
)

// Options say which release is made.
type Options struct {
	// Root of the checkout.
	Root string

	// Version of the release, for instance v0.1.0.
	Version string

	// Registry is what comes before the names of images, without a slash at the end, for instance registry.example.com/ichor.
	Registry string

	// Output is the directory that is written to. It is made when it is not there.
	Output string
}

// Write writes the files of a release into the output directory, and their checksums.
func Write(ctx context.Context, o Options) error {
	files, err := o.files(ctx, func(p Provider) bool { return !p.RepositoryOnly })
	if err != nil {
		return err
	}

	var sums strings.Builder

	for _, f := range files {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(f.content), f.name)
	}

	return writeAll(o.Output, append(files, file{checksumsFile, []byte(sums.String())}))
}

// WriteRepository writes a repository for clusterctl: a directory for each provider, with one for the version, and a
// configuration that leads clusterctl there. Other versions in the output directory stay.
func WriteRepository(ctx context.Context, o Options) error {
	files, err := o.files(ctx, func(Provider) bool { return true })
	if err != nil {
		return err
	}

	output, err := filepath.Abs(o.Output)
	if err != nil {
		return err
	}

	found, err := Providers(o.Root)
	if err != nil {
		return err
	}

	entries := make([]Entry, len(found))

	for i, provider := range found {
		own := slices.DeleteFunc(slices.Clone(files), func(f file) bool { return !provider.has(f.name) })

		if err := writeAll(filepath.Join(output, provider.Label, o.Version), own); err != nil {
			return err
		}

		entries[i] = Entry{
			Name: provider.Name, Type: provider.Type,
			URL: filepath.Join(output, provider.Label, "latest", provider.ComponentsFile),
		}
	}

	return WriteConfig(filepath.Join(output, ConfigFile), entries)
}

// Entry is a provider in clusterctl's configuration.
type Entry struct {
	Name string `json:"name"`
	Type string `json:"type"`
	URL  string `json:"url"`
}

// WriteConfig writes a configuration for clusterctl that has these providers besides those that clusterctl knows.
func WriteConfig(name string, entries []Entry) error {
	content, err := yaml.Marshal(map[string]any{"providers": entries})
	if err != nil {
		return err
	}

	return writeAll(filepath.Dir(name), []file{{filepath.Base(name), content}})
}

// ReadConfig returns the providers of a configuration that WriteConfig has written.
func ReadConfig(name string) ([]Entry, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}

	config := struct {
		Providers []Entry `json:"providers"`
	}{}
	if err := yaml.UnmarshalStrict(content, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}

	return config.Providers, nil
}

// file is one of a release.
type file struct {
	name    string
	content []byte
}

// files are the metadata, the components of some providers and the templates of clusters, in the order of their names.
func (o Options) files(ctx context.Context, wanted func(Provider) bool) ([]file, error) {
	if o.Registry == "" {
		return nil, errors.New("no registry: say where the managers' images are, for instance registry.example.com/ichor")
	}

	metadata, err := os.ReadFile(filepath.Join(o.Root, MetadataFile))
	if err != nil {
		return nil, err
	}

	if err := checkVersion(o.Version, metadata); err != nil {
		return nil, err
	}

	found, err := Providers(o.Root)
	if err != nil {
		return nil, err
	}

	files := []file{{MetadataFile, metadata}}

	for _, provider := range found {
		if !wanted(provider) {
			continue
		}

		components, err := provider.Components(ctx, o.Root, path.Join(o.Registry, provider.Image)+":"+o.Version)
		if err != nil {
			return nil, err
		}

		files = append(files, file{provider.ComponentsFile, components})
	}

	templates, err := readTemplates(o.Root)
	if err != nil {
		return nil, err
	}

	files = append(files, templates...)

	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })

	return files, nil
}

// readTemplates reads the templates of clusters, and the cluster classes that they may refer to.
func readTemplates(root string) ([]file, error) {
	paths, err := filepath.Glob(filepath.Join(root, templatesDirectory, "*.yaml"))
	if err != nil {
		return nil, err
	}

	templates := make([]file, len(paths))

	for i, each := range paths {
		content, err := os.ReadFile(each)
		if err != nil {
			return nil, err
		}

		templates[i] = file{filepath.Base(each), content}
	}

	return templates, nil
}

// checkVersion refuses what clusterctl would refuse later.
func checkVersion(version string, metadata []byte) error {
	number, ok := strings.CutPrefix(version, "v")
	parsed, err := semver.Parse(number)

	if !ok || err != nil {
		return fmt.Errorf("version %q: clusterctl takes semantic versions with a v in front, for instance v0.1.0", version)
	}

	known := &clusterctlv1.Metadata{}
	if err := yaml.UnmarshalStrict(metadata, known); err != nil {
		return fmt.Errorf("%s: %w", MetadataFile, err)
	}

	for _, series := range known.ReleaseSeries {
		if uint64(series.Major) == parsed.Major && uint64(series.Minor) == parsed.Minor {
			return nil
		}
	}

	return fmt.Errorf("version %s: %s has no releaseSeries with major %d and minor %d: add it", version, MetadataFile, parsed.Major, parsed.Minor)
}

func writeAll(directory string, files []file) error {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return err
	}

	for _, f := range files {
		if err := os.WriteFile(filepath.Join(directory, f.name), f.content, 0o644); err != nil {
			return err
		}
	}

	return nil
}
