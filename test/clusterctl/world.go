// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/maesh-dev/ichor/internal/release"
	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/pods"
	"github.com/maesh-dev/ichor/test/tools"
)

// Versions of Ichor that the repository may have. Version is this checkout; the earlier one differs as makeEarlier says. Each manager says
// which version it is.
const (
	EarlierVersion = "v0.1.0"
	Version        = "v0.1.1"
)

// registry is where the images would be.
const registry = "registry.example.com/ichor"

// Options say what there is to install besides Cluster API's core provider and Ichor's.
type Options struct {
	// CAPD adds Cluster API's infrastructure provider for tests, as infrastructure provider docker.
	CAPD bool

	// Earlier adds the earlier version of Ichor, to upgrade from.
	Earlier bool
}

// World is a management cluster, empty at first, with a clusterctl.
type World struct {
	*harness.ManagementCluster

	// Config is clusterctl's configuration, with the repository of the world.
	Config string

	program, dir string
}

// Start starts a management cluster and fills a repository. Nothing is installed.
func Start(ctx context.Context, options Options) (*World, error) {
	dir, err := os.MkdirTemp("", "ichor-clusterctl-")
	if err != nil {
		return nil, err
	}

	w := &World{dir: dir, Config: filepath.Join(dir, release.ConfigFile)}
	if err := w.start(ctx, options); err != nil {
		return nil, errors.Join(err, w.Stop())
	}

	return w, nil
}

func (w *World) start(ctx context.Context, options Options) error {
	var err error
	if w.program, err = tools.Path(ctx, tools.Clusterctl); err != nil {
		return err
	}

	providers := upstream(options)

	entries, err := w.addIchor(ctx, options.versions())
	if err != nil {
		return err
	}

	for _, provider := range providers {
		entry, err := provider.addTo(ctx, w.repository())
		if err != nil {
			return err
		}

		entries = append(entries, entry)
	}

	if err := release.WriteConfig(w.Config, entries); err != nil {
		return err
	}

	images, err := w.images(ctx, providers, options.versions())
	if err != nil {
		return err
	}

	w.ManagementCluster, err = harness.StartManagementCluster(ctx, harness.Options{Images: images})

	return err
}

// Stop ends everything and removes what was written.
func (w *World) Stop() error {
	var err error
	if w.ManagementCluster != nil {
		err = w.ManagementCluster.Stop()
	}

	return errors.Join(err, os.RemoveAll(w.dir))
}

func (w *World) repository() string { return filepath.Join(w.dir, "repository") }

// versions of Ichor, this checkout's last.
func (o Options) versions() []string {
	if o.Earlier {
		return []string{EarlierVersion, Version}
	}

	return []string{Version}
}

// addIchor puts versions of Ichor's providers into the repository.
func (w *World) addIchor(ctx context.Context, versions []string) ([]release.Entry, error) {
	root, err := tools.RepositoryRoot()
	if err != nil {
		return nil, err
	}

	options := release.Options{Root: root, Registry: registry, Output: w.repository()}

	for _, options.Version = range versions {
		if err := release.WriteRepository(ctx, options); err != nil {
			return nil, err
		}
	}

	providers, err := release.Providers(root)
	if err != nil {
		return nil, err
	}

	if slices.Contains(versions, EarlierVersion) {
		if err := makeAllEarlier(w.repository(), providers); err != nil {
			return nil, err
		}
	}

	return release.ReadConfig(filepath.Join(w.repository(), release.ConfigFile))
}

// images are what the harness runs of what can be installed.
func (w *World) images(ctx context.Context, providers []provider, versions []string) (map[string]pods.Image, error) {
	images := map[string]pods.Image{}

	for _, provider := range providers {
		program, err := tools.Path(ctx, provider.tool)
		if err != nil {
			return nil, err
		}

		images[provider.imageName] = pods.Image{Program: program, ExclusivePorts: provider.exclusivePorts}
	}

	root, err := tools.RepositoryRoot()
	if err != nil {
		return nil, err
	}

	own, err := release.Providers(root)
	if err != nil {
		return nil, err
	}

	for _, provider := range own {
		for _, version := range versions {
			image := pods.Image{}

			if image.Program, err = harness.BuildProviderVersion(ctx, provider.Package, version, filepath.Join(w.dir, version)); err != nil {
				return nil, err
			}

			if !provider.RepositoryOnly {
				image.LeaseNamespaceFlag = "--leader-elect-namespace"
			}

			images[provider.Image+":"+version] = image
		}
	}

	return images, nil
}

// Run runs clusterctl with the world's configuration and management cluster, and returns what it prints. The error has what it
// says besides.
func (w *World) Run(ctx context.Context, arguments ...string) (string, error) {
	flags := []string{"--config", w.Config}
	if arguments[0] != "generate" {
		flags = append(flags, "--kubeconfig", w.KubeconfigPath())
	}

	return w.run(ctx, arguments, flags)
}

// Generate runs `clusterctl generate`, which looks into the management cluster for clusters alone.
func (w *World) Generate(ctx context.Context, arguments ...string) (string, error) {
	return w.run(ctx, append([]string{"generate"}, arguments...), []string{"--config", w.Config, "--kubeconfig", w.KubeconfigPath()})
}

func (w *World) run(ctx context.Context, arguments, flags []string) (string, error) {
	command := exec.CommandContext(ctx, w.program, append(arguments, flags...)...)
	// Nothing of the user's own configuration, no search for a newer clusterctl, no object held to one reconcile a second, and cluster classes.
	command.Env = append(os.Environ(), "HOME="+w.dir, "XDG_CONFIG_HOME="+w.dir,
		"CLUSTERCTL_DISABLE_VERSIONCHECK=true", "EXP_RECONCILER_RATE_LIMITING=false", "CLUSTER_TOPOLOGY=true")

	var output, messages bytes.Buffer

	command.Stdout, command.Stderr = &output, &messages

	if err := command.Run(); err != nil {
		return output.String(), fmt.Errorf("clusterctl %s: %w\n%s", strings.Join(arguments, " "), err, messages.String())
	}

	return output.String(), nil
}

// Init installs Cluster API's core provider, Ichor's, and infrastructure providers by name, and waits until they are available.
func (w *World) Init(ctx context.Context, infrastructure ...string) error {
	return w.InitVersion(ctx, Version, infrastructure...)
}

// InitVersion is Init with a version of Ichor.
func (w *World) InitVersion(ctx context.Context, version string, infrastructure ...string) error {
	arguments := []string{
		"init", "--core", "cluster-api", "--bootstrap", "ichor:" + version, "--control-plane", "ichor:" + version,
		"--wait-providers", "--wait-provider-timeout", "600",
	}

	if len(infrastructure) > 0 {
		arguments = append(arguments, "--infrastructure", strings.Join(infrastructure, ","))
	}

	_, err := w.Run(ctx, arguments...)

	return err
}
