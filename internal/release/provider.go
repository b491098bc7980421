// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// unnamedImage is the image in config/*/manager, which stands for the release's own.
const unnamedImage = "image: controller:latest\n"

// Provider is one of a release's providers.
type Provider struct {
	// Label is the provider's name with its type, as clusterctl writes it, for instance bootstrap-ichor.
	Label string

	// Name and Type are those of clusterctl's configuration.
	Name, Type string

	// Kustomization is the directory, in the checkout, of everything that is installed.
	Kustomization string

	// ComponentsFile is the name of the release file.
	ComponentsFile string

	// Image is the last path element of the manager's image.
	Image string

	// Package is the directory, in the checkout, of the manager's main package.
	Package string

	// Templates are the templates of clusters, and the cluster classes, for this infrastructure provider, with which clusterctl looks for them.
	// Those for the providers of others are in a release, for clusterctl's flag --from.
	Templates []string

	// RepositoryOnly keeps the provider out of releases: it is for trying out from a checkout.
	RepositoryOnly bool
}

// has says whether a file of the release belongs to the provider's directory of a repository.
func (p Provider) has(file string) bool {
	return file == MetadataFile || file == p.ComponentsFile || slices.Contains(p.Templates, file)
}

// providers are all that a checkout may have.
var providers = []Provider{
	{
		Label: "bootstrap-ichor", Name: "ichor", Type: "BootstrapProvider",
		Kustomization: "config/bootstrap/default", ComponentsFile: "bootstrap-components.yaml", Image: "ichor-bootstrap-manager",
		Package: "bootstrap",
	},
	{
		Label: "control-plane-ichor", Name: "ichor", Type: "ControlPlaneProvider",
		Kustomization: "config/controlplane/default", ComponentsFile: "control-plane-components.yaml", Image: "ichor-controlplane-manager",
		Package: "controlplane",
	},
	{
		Label: "infrastructure-sim", Name: "sim", Type: "InfrastructureProvider",
		Kustomization: "test/infrastructure/config/default", ComponentsFile: "infrastructure-components.yaml", Image: "ichor-sim-manager",
		Package: "test/infrastructure", RepositoryOnly: true,
		Templates: []string{"cluster-template.yaml", "cluster-template-topology.yaml", "clusterclass-ichor.yaml"},
	},
}

// Providers returns the providers of the checkout with this root: those whose installation is there.
func Providers(root string) ([]Provider, error) {
	var found []Provider

	for _, provider := range providers {
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(provider.Kustomization), "kustomization.yaml"))

		switch {
		case err == nil:
			found = append(found, provider)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}

	if len(found) == 0 {
		return nil, fmt.Errorf("%s has no provider: name the root of a checkout", root)
	}

	return found, nil
}

// Components builds what is installed of the provider, with the image of its manager by its full name.
func (p Provider) Components(ctx context.Context, root, image string) ([]byte, error) {
	components, err := Kustomize(ctx, root, p.Kustomization)
	if err != nil {
		return nil, err
	}

	if count := bytes.Count(components, []byte(unnamedImage)); count != 1 {
		return nil, fmt.Errorf("%s has the image controller:latest %d times: the manager's, and no other, must have it", p.Kustomization, count)
	}

	return bytes.Replace(components, []byte(unnamedImage), []byte("image: "+image+"\n"), 1), nil
}

// Kustomize builds a directory of the checkout with this root. It runs kustomize as internal/tools pins it.
func Kustomize(ctx context.Context, root, directory string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", "tool", "-modfile=internal/tools/tools.mod", "kustomize", "build", directory)
	command.Dir = root

	var failure bytes.Buffer

	command.Stderr = &failure

	manifests, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("kustomize build %s: %w\n%s", directory, err, failure.String())
	}

	return manifests, nil
}
