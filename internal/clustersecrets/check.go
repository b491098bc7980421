// SPDX-License-Identifier: Apache-2.0

package clustersecrets

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
)

// Checked are the names of the Secrets that Check looks at: the cluster's bundle, its authorities and its key of service accounts. The
// talosconfig is not among them: no machine waits for it.
func Checked(cluster string) []string {
	return append([]string{secrets.BundleName(cluster)}, secrets.AuthorityNames(cluster)...)
}

// Check says what keeps the machines of a cluster from being rendered for want of secrets, as Make, Open and Keep would find it, and
// writes nothing. It says whether the cluster has a bundle: one that has none and no fault gets one with its first machine. The
// config is the TalosClusterConfig of the cluster. Read reads a Secret of the namespace by name, nil when there is none.
func (k *Keeper) Check(ctx context.Context, cluster *clusterv1.Cluster, config *bootstrapv1.TalosClusterConfig,
	read func(ctx context.Context, name string) (*corev1.Secret, error),
) (made bool, faults []*FaultError, err error) {
	reader := func(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) { return read(ctx, key.Name) }

	bundle, err := read(ctx, secrets.BundleName(cluster.Name))
	if err != nil {
		return false, nil, err
	}

	var found []error
	if bundle == nil {
		found = k.checkUnmade(ctx, reader, cluster, config)
	} else {
		found = k.checkMade(ctx, reader, cluster, config, bundle)
	}

	for _, each := range found {
		if fault, ok := errors.AsType[*FaultError](each); ok {
			faults = append(faults, fault)
		} else if each != nil {
			return bundle != nil, nil, each
		}
	}

	return bundle != nil, faults, nil
}

// checkMade looks at a bundle and at everything that must agree with it.
func (k *Keeper) checkMade(ctx context.Context, read reader, cluster *clusterv1.Cluster, config *bootstrapv1.TalosClusterConfig,
	secret *corev1.Secret,
) []error {
	// What a bundle must have is the same for every contract.
	bundle, err := k.decode(secret, version.Newest())
	if err != nil {
		return []error{err}
	}

	var found []error

	if text, pinned := secret.Annotations[secrets.ConfigContractAnnotation]; pinned {
		if _, err := version.ParseContract(text); err != nil {
			found = append(found, invalid(fmt.Errorf("secret %s: annotation %s: %w", secret.Name, secrets.ConfigContractAnnotation, err)))
		}
	}

	found = append(found, k.compareUserBundle(ctx, read, cluster, config, bundle, secret))
	all := []*corev1.Secret{secret}

	for _, name := range secrets.AuthorityNames(cluster.Name) {
		derived, err := read(ctx, keyOf(cluster, name))
		if derived == nil || err != nil {
			found = append(found, err)

			continue
		}

		all = append(all, derived)
		found = append(found, k.agrees(cluster, bundle, inputs.ContentVersion(secret), derived))
	}

	return append(found, k.refuseLeftovers(ctx, cluster, all))
}

// checkUnmade looks at what the bundle is going to be made of.
func (k *Keeper) checkUnmade(ctx context.Context, read reader, cluster *clusterv1.Cluster, config *bootstrapv1.TalosClusterConfig) []error {
	if err := k.refuseLost(ctx, cluster); err != nil {
		return []error{err}
	}

	supplied, err := k.supplied(ctx, read, cluster)
	if err != nil {
		return []error{err}
	}

	contract := clusterPin(config)
	if contract.IsZero() {
		contract = version.Newest()
	}

	if userBundle(config) == "" {
		return []error{k.checkSupplied(cluster, supplied)}
	}

	_, _, err = k.copyUserBundle(ctx, read, k.find, cluster, config, contract, supplied)

	return []error{err}
}

// checkSupplied says whether a bundle can be made with the authorities and keys.
func (k *Keeper) checkSupplied(cluster *clusterv1.Cluster, supplied []*corev1.Secret) error {
	if len(supplied) == 0 {
		return nil
	}

	if _, err := secrets.Adopt(secrets.Empty(k.clock), cluster.Name, supplied...); err != nil {
		return invalid(err)
	}

	return nil
}
