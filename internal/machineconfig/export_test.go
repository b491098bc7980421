// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// TalosPatch makes a patch of a document as Talos writes it, so that checks of the merged config can be tested with what the API's own
// types do not let through. It is in the layer of the object, and targets its cluster.
func TalosPatch(object *bootstrapv1.TalosConfigPatch, document string) (*Patch, error) {
	loaded, err := merge.Load([]byte(document))
	if err != nil {
		return nil, err
	}

	return &Patch{object: object, layer: Layer(object.Spec.Layer), documents: []*merge.Patch{loaded}}, nil
}

// Protected gives what patches are told that change a value of the base; it is nil where they may.
func Protected(id merge.ID, pointer string) error {
	if err := protectedKinds[id.Kind]; err != nil {
		return err
	}

	for _, leaf := range protectedLeaves {
		if id.Kind == merge.LegacyKind && isWithin(pointer, leaf.pointer) {
			return leaf.err
		}
	}

	return nil
}
