// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// maxParsedPatches bounds the memory for parsed patches.
const maxParsedPatches = 4096

// patchCache keeps TalosConfigPatches ready to be merged: each is parsed once per generation, whatever the number of machines.
type patchCache struct{ parsed *lru.Cache }

// patchVersion is one state of a patch: what it says, and the labels and annotations do not count, changes only with it.
type patchVersion struct {
	uid        types.UID
	generation int64
}

func newPatchCache() *patchCache { return &patchCache{lru.New(maxParsedPatches)} }

// get returns the patch ready to be merged. Two callers may parse the same patch at once; either result will do.
func (c *patchCache) get(object *bootstrapv1.TalosConfigPatch) *machineconfig.Patch {
	version := patchVersion{object.UID, object.Generation}

	if cached, ok := c.parsed.Get(version); ok {
		if patch, ok := cached.(*machineconfig.Patch); ok {
			return patch
		}
	}

	patch := machineconfig.ParsePatch(object)
	c.parsed.Add(version, patch)

	return patch
}

// all returns the patches of a list ready to be merged.
func (c *patchCache) all(list *bootstrapv1.TalosConfigPatchList) []*machineconfig.Patch {
	patches := make([]*machineconfig.Patch, len(list.Items))

	for i := range list.Items {
		// Apart from the list, so that a parsed patch does not hold all others in memory.
		object := list.Items[i]
		patches[i] = c.get(&object)
	}

	return patches
}
