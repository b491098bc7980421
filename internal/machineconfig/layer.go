// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"fmt"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

// Layer is a place in the order in which a machine config is built.
type Layer string

// The layers, lowest first. A later layer wins.
const (
	LayerBase    Layer = "Base"
	LayerSystem  Layer = "System"
	LayerCluster       = Layer(bootstrapv1.PatchLayerCluster)
	LayerRole          = Layer(bootstrapv1.PatchLayerRole)
	LayerPool          = Layer(bootstrapv1.PatchLayerPool)
	LayerMachine       = Layer(bootstrapv1.PatchLayerMachine)
)

// patchLayers are the layers that TalosConfigPatches belong to, in order.
var patchLayers = []Layer{LayerCluster, LayerRole, LayerPool, LayerMachine}

// Kinds of objects that appear as sources of a config's values.
const (
	KindCluster            = "Cluster"
	KindMachine            = "Machine"
	KindMachinePool        = "MachinePool"
	KindSecret             = "Secret"
	KindConfigMap          = "ConfigMap"
	KindTalosConfig        = "TalosConfig"
	KindTalosClusterConfig = "TalosClusterConfig"
	KindTalosConfigPatch   = "TalosConfigPatch"
	KindTalosStorage       = "TalosStorage"
)

// Source is what set a value: an object, in a layer.
type Source struct {
	// Layer that the object contributes to.
	Layer Layer `json:"layer"`

	// Kind of the object, for example TalosConfigPatch.
	Kind string `json:"kind"`

	// Name of the object, in the namespace of the machine.
	Name string `json:"name"`

	// Path is where in the object: "spec.documents[2]", "spec.registries[docker.io]". Empty when the whole object is meant.
	Path string `json:"path,omitempty"`
}

// String is "Pool layer: TalosConfigPatch gpu spec.documents[0]".
func (s Source) String() string {
	text := fmt.Sprintf("%s layer: %s %s", s.Layer, s.Kind, s.Name)
	if s.Path != "" {
		text += " " + s.Path
	}

	return text
}

// Object is the source without the path in it.
func (s Source) Object() Source {
	s.Path = ""

	return s
}
