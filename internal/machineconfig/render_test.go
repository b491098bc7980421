// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// TestUnresolvedSecrets is a mistake of the caller, which must not make a config without what the Secrets hold.
func TestUnresolvedSecrets(t *testing.T) {
	t.Parallel()

	in := input(t, "v1.14", false)
	clusterConfig(&in).Spec.AcceptedCAsSecretRef = ref("roots")
	in.Credentials = machineconfig.Credentials{}

	if _, err := machineconfig.Render(in); err == nil || !strings.Contains(err.Error(), "have not been resolved") {
		t.Errorf("got %v, want an error", err)
	}
}

// TestConcurrentRenders share the bundle, the patches and the objects. The race detector watches.
func TestConcurrentRenders(t *testing.T) {
	t.Parallel()

	in := input(t, "v1.14", false)
	layered(t, &in)

	want, err := machineconfig.Render(in)
	if err != nil {
		t.Fatal(err)
	}

	var group sync.WaitGroup

	for i := range 8 {
		group.Go(func() {
			own := in
			own.Machine.Name = fmt.Sprintf("w%d", i)
			own.Provenance = i%2 == 0

			got, err := machineconfig.Render(own)
			if err != nil {
				t.Error(err)
			} else if got.Hash != want.Hash {
				t.Errorf("machine %d has another config", i)
			}
		})
	}

	group.Wait()
}

// TestStrayReference warns of a patch for another cluster that a TalosConfig refers to.
func TestStrayReference(t *testing.T) {
	t.Parallel()

	const patchOfOther = "metadata: {name: p}\nspec: {layer: Pool, clusterName: c2, documents: [{kind: SysctlConfig, sysctlConfig: {params: {a.b: c}}}]}"

	in := input(t, "v1.14", false)
	in.Patches = []*machineconfig.Patch{patch(t, patchOfOther)}
	in.TalosConfig.Spec.PatchRefs = []bootstrapv1.PatchReference{{Name: "p"}}

	config, err := machineconfig.Render(in)
	if err != nil {
		t.Fatal(err)
	}

	if len(config.Warnings) != 1 || !strings.Contains(config.Warnings[0], `spec.patchRefs[0]: TalosConfigPatch "p" targets other clusters`) {
		t.Errorf("warnings %q, want one of the reference", config.Warnings)
	}
}
