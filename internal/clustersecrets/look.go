// SPDX-License-Identifier: Apache-2.0

package clustersecrets

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/prose"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
)

// Look says what is wrong with the secrets of a cluster, as the caches know them: a *FaultError, or nil. It reads nothing live and writes
// nothing. The carrier is a machine that has the secrets in its bootstrap data, as "Machine w-1": they must exist.
//
// Known is false when the caches cannot tell: the bundle exists without the label that the cache selects by, which it gets with the next look
// at the cluster. A difference from the Secret that spec.secretsRef names is found by Open alone.
func (k *Keeper) Look(ctx context.Context, cluster *clusterv1.Cluster, carrier string) (known bool, err error) {
	key := keyOf(cluster, secrets.BundleName(cluster.Name))

	secret, err := k.cached(ctx, key)
	if err != nil {
		return false, err
	}

	if secret == nil {
		unlabelled, err := k.version(ctx, key)
		if unlabelled != (inputs.Version{}) || err != nil {
			return false, err
		}

		return true, lost(cluster, carries(cluster, carrier))
	}

	// What a bundle must have is the same for every contract.
	bundle, err := k.decode(secret, version.Newest())
	if err != nil {
		return true, err
	}

	_, err = k.derived(ctx, k.cached, cluster, bundle, inputs.ContentVersion(secret))

	return true, err
}

// Read returns the bundle of a Secret that Find returned, decoded. What must agree with it is not looked at: see Look.
func (k *Keeper) Read(secret *corev1.Secret) (*secrets.Bundle, error) {
	return k.decode(secret, version.Newest())
}

// Notice says what is wrong with the time of a cluster's bundle, as the cache has it, and keeps no machine from being rendered: authorities that are
// not valid yet. It is empty when nothing is, or when there is no bundle that can be read.
func (k *Keeper) Notice(ctx context.Context, cluster *clusterv1.Cluster) (string, error) {
	secret, err := k.cached(ctx, keyOf(cluster, secrets.BundleName(cluster.Name)))
	if secret == nil || err != nil {
		return "", err
	}

	found, err := k.bundles.look(secret, k.clock)
	if now := k.clock.Now(); err != nil || !now.Before(found.valid) {
		return "", nil //nolint:nilerr // Look says what is wrong with one that cannot be read
	}

	names, valid := secrets.Pending(found.bundle, k.clock.Now())

	return fmt.Sprintf("secret %s: not valid before %s: %s: until then nodes and clients whose clocks are right refuse what they sign; the clock of "+
		"who made the bundle was ahead, or the manager's is behind", secret.Name, valid.UTC().Format(time.RFC3339), prose.Names(names)), nil
}
