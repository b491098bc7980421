// SPDX-License-Identifier: Apache-2.0

package clustersecrets

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
)

// maxStates bounds what is remembered of clusters that are asked about again and again.
const maxStates = 4096

// State is how the secrets of a cluster are.
type State struct {
	// Bundle is the Secret with the bundle, nil when the cluster has none.
	Bundle *corev1.Secret

	// Fault is what is wrong, nil when nothing is.
	Fault *FaultError
}

// stateCache remembers by cluster what versions of its Secrets have come to: to read hundreds of bundles each minute would cost more than they
// change, and take the place of those that machines are rendered with.
type stateCache struct{ known *lru.Cache }

func newStateCache() *stateCache { return &stateCache{lru.New(maxStates)} }

type knownState struct {
	versions []inputs.Version
	err      error
}

func (c *stateCache) once(cluster types.UID, versions []inputs.Version, look func() error) error {
	cached, _ := c.known.Get(cluster)
	if last, ok := cached.(knownState); ok && slices.Equal(last.versions, versions) {
		return last.err
	}

	err := look()
	c.known.Add(cluster, knownState{versions, err})

	return err
}

// State says how the secrets of a cluster are, as the caches know them, and as Look and RefuseLost would find it. It reads nothing live and
// writes nothing.
func (k *Keeper) State(ctx context.Context, cluster *clusterv1.Cluster) (State, error) {
	var (
		state    State
		found    []*corev1.Secret
		versions []inputs.Version
	)

	for _, name := range append([]string{secrets.BundleName(cluster.Name)}, derivedNames(cluster)...) {
		secret, err := k.cached(ctx, keyOf(cluster, name))
		if err != nil {
			return state, err
		}

		if secret == nil {
			versions = append(versions, inputs.Version{})

			continue
		}

		found, versions = append(found, secret), append(versions, inputs.ContentVersion(secret))
	}

	if versions[0] == (inputs.Version{}) {
		// One without the label gets it with the next look at the cluster.
		unlabelled, err := k.version(ctx, keyOf(cluster, secrets.BundleName(cluster.Name)))
		if unlabelled != (inputs.Version{}) || err != nil {
			return state, err
		}

		return state.with(k.refuseLost(ctx, cluster))
	}

	state.Bundle = found[0]

	err := k.states.once(cluster.UID, versions, func() error {
		bundle, err := k.decode(state.Bundle, version.Newest())
		if err != nil {
			return err
		}

		for _, secret := range found[1:] {
			if err := k.agrees(cluster, bundle, versions[0], secret); err != nil {
				return err
			}
		}

		return nil
	})
	if err == nil {
		err = k.refuseLeftovers(ctx, cluster, found)
	}

	return state.with(err)
}

// with puts a fault into the state. Another error is returned.
func (s State) with(err error) (State, error) {
	if fault, ok := errors.AsType[*FaultError](err); ok {
		s.Fault = fault

		return s, nil
	}

	return s, err
}
