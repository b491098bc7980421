// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
)

// bundleError is what a user must mend about the cluster's secrets. Its reason is one of the SecretsBundleAvailable condition.
type bundleError struct {
	reason string
	err    error
}

func (f *bundleError) Error() string { return f.err.Error() }

func (f *bundleError) Unwrap() error { return f.err }

// clusterSecrets returns the contract to render with and the cluster's secrets bundle. The bundle is made if the cluster
// has none, by whoever comes first; the Secrets that others read are made of it.
func (r *Reconciler) clusterSecrets(ctx context.Context, seen observation, config *bootstrapv1.TalosClusterConfig,
) (version.Contract, *secrets.Bundle, error) {
	found, err := r.findBundle(ctx, seen)
	if err != nil {
		return version.Contract{}, nil, err
	}

	pins := machineconfig.Pins{Machine: seen.config.Status.ConfigContract}
	if found != nil {
		pins.Cluster = found.Annotations[secrets.ConfigContractAnnotation]
	}

	// Before the bundle is made: a cluster that nobody says the contract of gets no secrets either.
	contract, err := machineconfig.SelectContract(seen.config, config, pins)
	if err != nil {
		return version.Contract{}, nil, err
	}

	if found == nil {
		if found, err = r.mintBundle(ctx, seen, config, contract); err != nil {
			return version.Contract{}, nil, err
		}
	}

	bundle, err := r.openBundle(ctx, seen, config, found, contract)

	return contract, bundle, err
}

// findBundle returns the Secret with the bundle, nil when there is none. The cache may lack it: just written, or without
// the label.
func (r *Reconciler) findBundle(ctx context.Context, seen observation) (*corev1.Secret, error) {
	key := client.ObjectKey{Namespace: seen.cluster.Namespace, Name: secrets.BundleName(seen.cluster.Name)}
	secret := &corev1.Secret{}

	err := r.Client.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return r.readSecret(ctx, key)
	}

	if err != nil {
		return nil, fmt.Errorf("secret %s: %w", key.Name, err)
	}

	return secret, nil
}

// readSecret reads live; nil means that there is none.
func (r *Reconciler) readSecret(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	secret := &corev1.Secret{}

	err := r.APIReader.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}

	if err != nil {
		return nil, fmt.Errorf("secret %s: read: %w", key.Name, err)
	}

	return secret, nil
}

// openBundle decodes the bundle, proves it complete, and sees to everything that goes with it.
func (r *Reconciler) openBundle(ctx context.Context, seen observation, config *bootstrapv1.TalosClusterConfig,
	secret *corev1.Secret, contract version.Contract,
) (*secrets.Bundle, error) {
	bundle, err := r.bundles.get(secret, r.Clock)
	if err == nil {
		err = r.proofs.once(proof{bundle: versionOf(secret), contract: contract}, func() error { return secrets.Check(bundle, contract) })
	}

	if err != nil {
		return nil, &bundleError{
			reason: bootstrapv1.SecretsBundleInvalidReason,
			err:    fmt.Errorf("secret %s: %w; mend the bundle or restore it from a backup", secret.Name, err),
		}
	}

	if err = r.compareUserBundle(ctx, seen, config, bundle, secret.Name); err != nil {
		return nil, err
	}

	if err = r.ensureBundleMetadata(ctx, seen, config, secret); err != nil {
		return nil, err
	}

	return bundle, r.ensureDerived(ctx, seen, bundle, versionOf(secret))
}

// mintBundle creates the bundle Secret. All workers of this process that need it wait for one of them; other processes
// may try at the same time, and whoever comes second takes what the first has written.
func (r *Reconciler) mintBundle(ctx context.Context, seen observation, config *bootstrapv1.TalosClusterConfig, contract version.Contract) (*corev1.Secret, error) {
	// Nodes run with the lost secrets. New ones would give every new machine a cluster of its own.
	if initialized(seen.cluster) {
		return nil, &bundleError{bootstrapv1.SecretsBundleMissingReason, fmt.Errorf(
			"secret %s does not exist, and Cluster %s is initialized: its secrets are not made again; restore the Secret from a backup",
			secrets.BundleName(seen.cluster.Name), seen.cluster.Name)}
	}

	minted, err, _ := r.minting.Do(string(seen.cluster.UID), func() (any, error) {
		return r.mintOnce(ctx, seen, config, contract)
	})
	if err != nil {
		return nil, err
	}

	secret, ok := minted.(*corev1.Secret)
	if !ok {
		return nil, fmt.Errorf("secret %s: made a %T", secrets.BundleName(seen.cluster.Name), minted)
	}

	return secret, nil
}

func (r *Reconciler) mintOnce(ctx context.Context, seen observation, config *bootstrapv1.TalosClusterConfig, contract version.Contract) (*corev1.Secret, error) {
	// Another worker may have been through here since the cache was read.
	if existing, err := r.findBundle(ctx, seen); existing != nil || err != nil {
		return existing, err
	}

	// Only now: with a bundle that another worker has just made, the first machines may have theirs already.
	if err := r.refuseLostBundle(ctx, seen); err != nil {
		return nil, err
	}

	bundle, origin, err := r.newBundle(ctx, seen, config, contract)
	if err != nil {
		return nil, err
	}

	secret, err := secrets.BundleSecret(seen.cluster, bundle, clusterPin(config))
	if err != nil {
		return nil, fmt.Errorf("secret %s: %w", secrets.BundleName(seen.cluster.Name), err)
	}

	err = r.Client.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		existing, err := r.readSecret(ctx, client.ObjectKeyFromObject(secret))
		if existing == nil && err == nil {
			err = fmt.Errorf("secret %s: it was deleted right after it had been created", secret.Name)
		}

		return existing, err
	}

	if err != nil {
		return nil, fmt.Errorf("secret %s: create: %w", secret.Name, err)
	}

	r.recordBundle(seen, secret, origin)
	ctrl.LoggerFrom(ctx).Info("Created the cluster's secrets bundle", "Secret", klog.KObj(secret), "origin", origin)

	return secret, nil
}

// newBundle returns the user's bundle, or a new one with the certificate authorities that the user may have supplied.
func (r *Reconciler) newBundle(ctx context.Context, seen observation, config *bootstrapv1.TalosClusterConfig, contract version.Contract,
) (*secrets.Bundle, string, error) {
	if ref := userBundle(config); ref != "" {
		bundle, err := r.readUserBundle(ctx, seen, config, ref)
		if bundle == nil && err == nil {
			err = &bundleError{
				reason: bootstrapv1.SecretsBundleInvalidReason,
				err:    fmt.Errorf("TalosClusterConfig %s: spec.secretsRef: secret %q does not exist in the namespace: create it", config.Name, ref),
			}
		}

		return bundle, "copied from Secret " + ref, err
	}

	var supplied []*corev1.Secret

	for _, name := range secrets.AuthorityNames(seen.cluster.Name) {
		secret, err := r.readSecret(ctx, client.ObjectKey{Namespace: seen.cluster.Namespace, Name: name})
		if err != nil {
			return nil, "", err
		}

		if secret != nil {
			supplied = append(supplied, secret)
		}
	}

	bundle, err := secrets.New(r.Clock, contract)
	if err != nil {
		return nil, "", fmt.Errorf("make the secrets bundle: %w", err)
	}

	if len(supplied) == 0 {
		return bundle, "generated", nil
	}

	adopted, err := secrets.Adopt(bundle, seen.cluster.Name, supplied...)
	if err != nil {
		return nil, "", &bundleError{bootstrapv1.SecretsBundleInvalidReason, err}
	}

	return adopted, "generated, with the certificate authorities and keys that existed", nil
}

func userBundle(config *bootstrapv1.TalosClusterConfig) string {
	if config == nil || config.Spec.SecretsRef == nil {
		return ""
	}

	return config.Spec.SecretsRef.Name
}

// readUserBundle reads the bundle that the TalosClusterConfig refers to; nil means that the Secret does not exist.
func (r *Reconciler) readUserBundle(ctx context.Context, seen observation, config *bootstrapv1.TalosClusterConfig, name string) (*secrets.Bundle, error) {
	secret, err := r.readSecret(ctx, client.ObjectKey{Namespace: seen.cluster.Namespace, Name: name})
	if secret == nil || err != nil {
		return nil, err
	}

	bundle, _, err := secrets.FromSecret(secret, r.Clock)
	if err != nil {
		return nil, &bundleError{
			reason: bootstrapv1.SecretsBundleInvalidReason,
			err:    fmt.Errorf("TalosClusterConfig %s: spec.secretsRef: %w", config.Name, err),
		}
	}

	return bundle, nil
}

// compareUserBundle says so when the user's bundle has changed since it was copied. That it is gone is no fault.
func (r *Reconciler) compareUserBundle(ctx context.Context, seen observation, config *bootstrapv1.TalosClusterConfig,
	bundle *secrets.Bundle, name string,
) error {
	ref := userBundle(config)
	if ref == "" {
		return nil
	}

	theirs, err := r.readUserBundle(ctx, seen, config, ref)
	if theirs == nil || err != nil {
		return err
	}

	if err := secrets.CheckSameBundle(bundle, ref, theirs); err != nil {
		return &bundleError{bootstrapv1.SecretsBundleMismatchReason, fmt.Errorf(
			"TalosClusterConfig %s: spec.secretsRef: %w; Secret %s was copied from it once", config.Name, err, name)}
	}

	return nil
}

// clusterPin is the contract that the TalosClusterConfig gives the cluster: what it says, or the minor of its Talos version
// now, which a later upgrade does not change. It is unset when machines must say it themselves.
func clusterPin(config *bootstrapv1.TalosClusterConfig) version.Contract {
	contract, err := machineconfig.SelectContract(&bootstrapv1.TalosConfig{}, config, machineconfig.Pins{})
	if err != nil {
		return version.Contract{}
	}

	return contract
}
