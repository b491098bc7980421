// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/blang/semver/v4"

	"github.com/maesh-dev/ichor/internal/release"
	"github.com/maesh-dev/ichor/test/tools"
)

// capdDebugPort is the port of CAPD's debug server, which no flag changes.
const capdDebugPort = 19000

// provider is one of Cluster API's own release.
type provider struct {
	label, name, kind string

	// components is the tool that is the release file, and tool the manager.
	components, tool string

	// imageName is the last path element of the manager's image.
	imageName string

	exclusivePorts []int
}

func upstream(options Options) []provider {
	providers := []provider{{
		label: "cluster-api", name: "cluster-api", kind: "CoreProvider",
		components: tools.CAPICoreComponents, tool: tools.CAPICore, imageName: "cluster-api-controller",
	}}

	if options.CAPD {
		providers = append(providers, provider{
			label: "infrastructure-docker", name: "docker", kind: "InfrastructureProvider",
			components: tools.CAPDComponents, tool: tools.CAPD, imageName: "capd-manager",
			exclusivePorts: []int{capdDebugPort},
		})
	}

	return providers
}

// addTo puts the provider into a repository.
func (p provider) addTo(ctx context.Context, repository string) (release.Entry, error) {
	version, err := tools.Version(p.tool)
	if err != nil {
		return release.Entry{}, err
	}

	parsed, err := semver.ParseTolerant(version)
	if err != nil {
		return release.Entry{}, fmt.Errorf("version %s of %s: %w", version, p.tool, err)
	}

	path, err := tools.Path(ctx, p.components)
	if err != nil {
		return release.Entry{}, err
	}

	components, err := os.ReadFile(path)
	if err != nil {
		return release.Entry{}, err
	}

	directory := filepath.Join(repository, p.label, version)
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return release.Entry{}, err
	}

	metadata := fmt.Sprintf("apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries:\n- {major: %d, minor: %d, contract: v1beta2}\n",
		parsed.Major, parsed.Minor)
	if err := os.WriteFile(filepath.Join(directory, release.MetadataFile), []byte(metadata), 0o644); err != nil {
		return release.Entry{}, err
	}

	file := filepath.Base(path)
	entry := release.Entry{Name: p.name, Type: p.kind, URL: filepath.Join(repository, p.label, "latest", file)}

	return entry, os.WriteFile(filepath.Join(directory, file), components, 0o644)
}
