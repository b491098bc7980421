// SPDX-License-Identifier: Apache-2.0

package validating

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/version"
)

// etcd37 is the minor of the first Talos whose etcd lacks flags that the one before had.
const etcd37 = 14

// lookBound is how long a look at other objects may take. What it would find is only a warning.
const lookBound = 2 * time.Second

// NeedsLaterEtcd says whether a Talos version or a config contract is one of a Talos with etcd 3.7. What is not said, or is none, is not.
func NeedsLaterEtcd(talosOrContract string) bool {
	if talos, err := version.ParseTalos(talosOrContract); err == nil {
		return talos.Contract().AtLeast(etcd37)
	}

	contract, err := version.ParseContract(talosOrContract)

	return err == nil && contract.AtLeast(etcd37)
}

// GoneEtcdFlags warns that what is said in a field brings a Talos with etcd 3.7, while patches have flags with which that does not start. Patches
// may be mended after this, and machines with them get no config before: it is no reason to refuse anything, nor is it one that the patches
// cannot be read.
func GoneEtcdFlags(ctx context.Context, reader client.Reader, namespace, field string, applies func(*bootstrapv1.TalosConfigPatch) bool) []string {
	ctx, cancel := context.WithTimeout(ctx, lookBound)
	defer cancel()

	patches := &bootstrapv1.TalosConfigPatchList{}
	if err := reader.List(ctx, patches, client.InNamespace(namespace)); err != nil {
		return nil
	}

	var warnings []string

	for i := range patches.Items {
		patch := &patches.Items[i]
		if !hasEtcdFlags(patch) || !applies(patch) {
			continue
		}

		for _, sentence := range machineconfig.ParsePatch(patch).GoneFlags() {
			warnings = append(warnings, fmt.Sprintf("%s: no control-plane machine gets a config from then on, because of %s", field, sentence))
		}
	}

	slices.Sort(warnings)

	return warnings
}

// hasEtcdFlags is a quick look, which keeps most patches from being parsed.
func hasEtcdFlags(patch *bootstrapv1.TalosConfigPatch) bool {
	return slices.ContainsFunc(patch.Spec.Documents, func(document machineconfigv1alpha1.Document) bool {
		return document.Kind == machineconfigv1alpha1.KindConfig
	})
}
