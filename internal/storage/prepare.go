// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"errors"

	"github.com/siderolabs/talos/pkg/machinery/config/config"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/version"
)

// Preparation is what a TalosStorage prepares on the nodes that it governs. It is rendered in the system layer, below every patch, so a
// patch can override it.
type Preparation struct {
	// Documents are Talos documents: the volume, and what else the storage system needs of the kernel. They are of the contract: modern
	// documents where it has them, the legacy document below.
	Documents []config.Document

	// NodeLabels and NodeAnnotations belong on the Kubernetes Node. Where they go depends on the contract, and the renderer puts all of
	// a Node's labels into one place.
	NodeLabels, NodeAnnotations map[string]string

	// DiskPath is where the storage system finds its disk on the node: a directory, or a block device.
	DiskPath string

	// Warnings are what a user should know about the node, though it works.
	Warnings []string
}

// Prepare returns what the TalosStorage's preset prepares on a node with a config of the given contract. The same input gives the same
// output. The error holds an Error for each field of the spec that Talos would refuse, or that Longhorn would silently ignore.
func Prepare(storage *bootstrapv1.TalosStorage, contract version.Contract) (Preparation, error) {
	if contract.IsZero() {
		return Preparation{}, errors.New("the config contract must be known to prepare storage")
	}

	preparation, err := prepare(&storage.Spec, contract)
	if err != nil {
		return Preparation{}, named(storage.Name, err)
	}

	return preparation, nil
}

func prepare(spec *bootstrapv1.TalosStorageSpec, contract version.Contract) (Preparation, error) {
	switch spec.Preset {
	case bootstrapv1.StoragePresetLonghornV1:
		return longhornV1(spec)
	case bootstrapv1.StoragePresetLonghornV2:
		return longhornV2(spec, contract)
	default:
		return Preparation{}, fault("spec.preset", "%q is no preset: must be %s or %s",
			spec.Preset, bootstrapv1.StoragePresetLonghornV1, bootstrapv1.StoragePresetLonghornV2)
	}
}
