// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/expression"
	"github.com/maesh-dev/ichor/internal/version"
)

const (
	// defaultInstallerRegistry is the Image Factory that Sidero Labs runs.
	defaultInstallerRegistry = "factory.talos.dev"

	// vanillaSchematic is the Image Factory's ID of a schematic without any customization: the SHA-256 of "customization: {}\n".
	vanillaSchematic = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"
)

// install makes what TalosConfig.spec.install says, in the form of the contract.
func (s *system) install(settings talosSettings) error {
	install := s.in.TalosConfig.Spec.Install
	if install.Disk == "" && install.DiskSelector == "" {
		return nil
	}

	source := Source{Layer: LayerSystem, Kind: KindTalosConfig, Name: s.in.TalosConfig.Name, Path: "spec.install"}

	image, err := installerImage(install, settings)
	if err != nil {
		return &Error{Reason: ReasonRenderFailed, Source: source, Field: "image", Err: err}
	}

	if s.in.Contract.Machinery().UnattendedInstallConfig() {
		return s.unattendedInstall(source, install, image)
	}

	return s.legacyInstall(source, install, image)
}

// installerImage is the image that Talos is installed from: the machine's own, or the Image Factory's for its version,
// schematic and platform. The platform is never guessed: a metal installer on a virtual machine of vSphere breaks it.
func installerImage(install bootstrapv1.InstallSpec, settings talosSettings) (string, error) {
	if install.Image != "" {
		return install.Image, nil
	}

	if settings.version == "" {
		return "", errors.New("nothing says which Talos to install: set image, or spec.talos.version and spec.talos.installer.platform in the TalosClusterConfig")
	}

	if settings.installer.Platform == "" {
		return "", errors.New("nothing says for which platform Talos is installed: set spec.talos.installer.platform in the TalosClusterConfig (for example metal or nocloud), or image")
	}

	if _, err := version.ParseTalos(settings.version); err != nil {
		return "", fmt.Errorf("%s.version: %w", settings.source.Path, err)
	}

	suffix := ""
	if settings.installer.SecureBoot == bootstrapv1.Enabled {
		suffix = "-secureboot"
	}

	return fmt.Sprintf("%s/%s-installer%s/%s:%s",
		cmp.Or(settings.installer.Registry, defaultInstallerRegistry), settings.installer.Platform, suffix,
		cmp.Or(settings.schematicID, vanillaSchematic), settings.version), nil
}

func (s *system) unattendedInstall(source Source, install bootstrapv1.InstallSpec, image string) error {
	if len(install.ExtraKernelArgs) > 0 {
		return &Error{
			Reason: ReasonRenderFailed, Source: source, Field: "extraKernelArgs",
			Err: noKernelArgs(s.in.Contract),
		}
	}

	selector, field := install.DiskSelector, "diskSelector"
	if selector == "" {
		selector, field = fmt.Sprintf("disk.dev_path == %q", install.Disk), "disk"
	}

	match, err := expression.ParseSelector(selector, celenv.DiskLocator())
	if err != nil {
		return &Error{Reason: ReasonRenderFailed, Source: source, Field: field, Err: notExpression(err)}
	}

	document := runtime.NewUnattendedInstallConfigV1Alpha1()
	document.Installer.Image = image
	document.ProvisioningSpec.DiskSelector.Match = match
	document.ProvisioningSpec.Wipe = new(install.Wipe != nil && *install.Wipe)
	s.put(source, document)

	return nil
}

func (s *system) legacyInstall(source Source, install bootstrapv1.InstallSpec, image string) error {
	if install.Disk == "" {
		return &Error{
			Reason: ReasonRenderFailed, Source: source, Field: "diskSelector",
			Err: noExpressions(s.in.Contract),
		}
	}

	s.put(source, legacy(func(machine *v1alpha1.MachineConfig, _ *v1alpha1.ClusterConfig) {
		settings := &v1alpha1.InstallConfig{
			InstallDisk:            install.Disk,
			InstallImage:           image,
			InstallWipe:            new(install.Wipe != nil && *install.Wipe),
			InstallExtraKernelArgs: install.ExtraKernelArgs,
		}

		// Talos refuses kernel arguments together with the command line of a unified kernel image.
		if len(install.ExtraKernelArgs) > 0 {
			settings.InstallGrubUseUKICmdline = new(false)
		}

		machine.MachineInstall = settings
	}))

	return nil
}

func notExpression(err error) error { return fmt.Errorf("not an expression over a disk: %w", err) }

func noExpressions(contract version.Contract) error {
	return fmt.Errorf("config contract %s knows no disk expressions: set disk instead", contract)
}

func noKernelArgs(contract version.Contract) error {
	return fmt.Errorf("config contract %s has no place for kernel arguments: put them into the Image Factory schematic, whose ID is spec.talos.schematicID of the TalosClusterConfig", contract)
}
