// SPDX-License-Identifier: Apache-2.0

package clustersecrets

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
)

// Find returns the Secret with the cluster's bundle, nil when there is none. It looks into the cache first.
func (k *Keeper) Find(ctx context.Context, cluster *clusterv1.Cluster) (*corev1.Secret, error) {
	return k.find(ctx, keyOf(cluster, secrets.BundleName(cluster.Name)))
}

// Open returns the bundle of a Secret that Find or Make returned, and sees to everything that goes with it: the Secrets that are made of
// it, and the Cluster as owner of all. The config is the TalosClusterConfig of the cluster, if it has one. A *FaultError is the user's to mend.
func (k *Keeper) Open(ctx context.Context, cluster *clusterv1.Cluster, config *bootstrapv1.TalosClusterConfig,
	secret *corev1.Secret, contract version.Contract,
) (*secrets.Bundle, error) {
	bundle, err := k.decode(secret, contract)
	if err != nil {
		return nil, err
	}

	if err := k.compareUserBundle(ctx, k.read, cluster, config, bundle, secret); err != nil {
		return nil, err
	}

	pin := ""
	if contract := clusterPin(config); !contract.IsZero() {
		pin = contract.String()
	}

	return bundle, k.ensure(ctx, cluster, secret, bundle, pin)
}

// Stands says so when the Secret that Open was given no longer holds the cluster's bundle. It is asked right before a config is written: a
// machine must not boot with secrets that have been deleted or replaced while they were rendered. It reads live only when the caches disagree.
func (k *Keeper) Stands(ctx context.Context, opened *corev1.Secret) error {
	key := client.ObjectKeyFromObject(opened)

	if current, err := k.version(ctx, key); current == inputs.ContentVersion(opened) || err != nil {
		return err
	}

	// Either cache may be behind, and one that has just been made is in none. A new version may have another label, and the same bundle.
	current, err := k.read(ctx, key)
	if err != nil {
		return err
	}

	if current == nil || current.UID != opened.UID || !bytes.Equal(current.Data[secrets.BundleKey], opened.Data[secrets.BundleKey]) {
		return fmt.Errorf("secret %s: was deleted or replaced while a config was rendered with it: it is rendered again", opened.Name)
	}

	return nil
}

// decode returns the bundle of a Secret when it is complete.
func (k *Keeper) decode(secret *corev1.Secret, contract version.Contract) (*secrets.Bundle, error) {
	if err := refuseMachines(secret); err != nil {
		return nil, err
	}

	bundle, err := k.bundles.get(secret, k.clock)
	if err == nil {
		err = k.proofs.once(proof{bundle: inputs.ContentVersion(secret), contract: contract}, func() error { return secrets.Check(bundle, contract) })
	}

	if err != nil {
		return nil, invalid(fmt.Errorf("secret %s: %w; mend the bundle or restore it from a backup", secret.Name, err))
	}

	return bundle, nil
}

// Make creates the Secret with the cluster's bundle, or returns the one that somebody else has created in the meantime. All workers of this
// process that need it wait for one of them; other processes may try at the same time, and whoever comes second takes what the first has
// written. It is a *FaultError if machines carry secrets already, which a new bundle would not have.
func (k *Keeper) Make(ctx context.Context, cluster *clusterv1.Cluster, config *bootstrapv1.TalosClusterConfig, contract version.Contract,
) (*corev1.Secret, error) {
	made, err, _ := k.making.Do(string(cluster.UID), func() (any, error) { return k.makeOnce(ctx, cluster, config, contract) })
	if err != nil {
		return nil, err
	}

	secret, ok := made.(*corev1.Secret)
	if !ok {
		return nil, fmt.Errorf("secret %s: made a %T", secrets.BundleName(cluster.Name), made)
	}

	return secret, nil
}

func (k *Keeper) makeOnce(ctx context.Context, cluster *clusterv1.Cluster, config *bootstrapv1.TalosClusterConfig, contract version.Contract,
) (*corev1.Secret, error) {
	// Another worker or process may have been through here, and no cache have seen it.
	if existing, err := k.read(ctx, keyOf(cluster, secrets.BundleName(cluster.Name))); existing != nil || err != nil {
		return existing, err
	}

	// Only now: with a bundle that another worker has just made, the first machines may have theirs already.
	if existing, err := k.foundInstead(ctx, cluster, k.refuseLostLive(ctx, cluster)); existing != nil || err != nil {
		return existing, err
	}

	// Of two Clusters that are to have the same one, the second sees that the first has it.
	if userBundle(config) != "" {
		k.copying.Lock()
		defer k.copying.Unlock()
	}

	bundle, origin, copied, err := k.newBundle(ctx, cluster, config, contract)
	if err != nil {
		return nil, err
	}

	secret, err := secrets.BundleSecret(cluster, bundle, clusterPin(config))
	if err != nil {
		return nil, fmt.Errorf("secret %s: %w", secrets.BundleName(cluster.Name), err)
	}

	if existing, err := k.create(ctx, secret); existing != nil || err != nil {
		return existing, err
	}

	// It need not be read again to be compared with what was made of it.
	if copied != (inputs.Version{}) {
		k.proofs.add(proof{bundle: inputs.ContentVersion(secret), object: copied})
	}

	k.recordMade(cluster, secret, origin)
	ctrl.LoggerFrom(ctx).Info("Created the cluster's secrets bundle", "Secret", klog.KObj(secret), "origin", origin)

	return secret, nil
}

// newBundle returns the bundle of a cluster that has none: the user's, with the version of its Secret, or a new one with the certificate
// authorities that the user may have supplied. It is complete, and nothing that exists disagrees with it.
func (k *Keeper) newBundle(ctx context.Context, cluster *clusterv1.Cluster, config *bootstrapv1.TalosClusterConfig, contract version.Contract,
) (bundle *secrets.Bundle, origin string, copied inputs.Version, err error) {
	supplied, err := k.supplied(ctx, k.read, cluster)
	if err != nil {
		return nil, "", copied, err
	}

	if ref := userBundle(config); ref != "" {
		bundle, copied, err := k.copyUserBundle(ctx, k.read, k.read, cluster, config, contract, supplied)

		return bundle, "copied from Secret " + ref, copied, err
	}

	bundle, err = secrets.New(k.clock, contract, k.options...)
	if err != nil {
		return nil, "", copied, fmt.Errorf("make the secrets bundle: %w", err)
	}

	if len(supplied) == 0 {
		return bundle, "generated", copied, nil
	}

	if bundle, err = secrets.Adopt(bundle, cluster.Name, supplied...); err != nil {
		return nil, "", copied, invalid(err)
	}

	return bundle, "generated, with the certificate authorities and keys that existed", copied, nil
}

// copyUserBundle returns the bundle that the TalosClusterConfig refers to. It is complete, agrees with the Secrets supplied, and is no other
// Cluster's, whose own is looked for with others.
func (k *Keeper) copyUserBundle(ctx context.Context, read, others reader, cluster *clusterv1.Cluster, config *bootstrapv1.TalosClusterConfig,
	contract version.Contract, supplied []*corev1.Secret,
) (*secrets.Bundle, inputs.Version, error) {
	bundle, copied, err := k.completeUserBundle(ctx, read, others, cluster, config, contract)
	if err != nil {
		return nil, copied, err
	}

	if err := secrets.CheckSupplied(bundle, cluster.Name, supplied...); err != nil {
		return nil, copied, mismatch(fmt.Errorf("TalosClusterConfig %s: spec.secretsRef: secret %s and the Secrets that exist differ: %w",
			config.Name, userBundle(config), err))
	}

	return bundle, copied, nil
}

// supplied returns the certificate authorities and keys that exist before the bundle. They are read live, since users create them in one go
// with everything else: a bundle that was made without one that no cache has seen yet would never agree with it.
func (k *Keeper) supplied(ctx context.Context, read reader, cluster *clusterv1.Cluster) ([]*corev1.Secret, error) {
	var found []*corev1.Secret

	for _, name := range secrets.AuthorityNames(cluster.Name) {
		secret, err := read(ctx, keyOf(cluster, name))
		if err != nil {
			return nil, err
		}

		if secret == nil {
			continue
		}

		if err := refuseMachines(secret); err != nil {
			return nil, err
		}

		// Those of a deleted cluster are no user's: whoever had its kubeconfig would have this one's, too.
		if isLeftover(secret, cluster) {
			return nil, leftover(secret, cluster)
		}

		found = append(found, secret)
	}

	return found, nil
}

func userBundle(config *bootstrapv1.TalosClusterConfig) string {
	if config == nil || config.Spec.SecretsRef == nil {
		return ""
	}

	return config.Spec.SecretsRef.Name
}

// completeUserBundle reads the bundle to copy.
func (k *Keeper) completeUserBundle(ctx context.Context, read, others reader, cluster *clusterv1.Cluster, config *bootstrapv1.TalosClusterConfig, contract version.Contract,
) (*secrets.Bundle, inputs.Version, error) {
	ref := userBundle(config)

	bundle, copied, err := k.readUserBundle(ctx, read, cluster, config)
	if err != nil {
		return nil, copied, err
	}

	if bundle == nil {
		err = fmt.Errorf("secret %q does not exist in the namespace: create it", ref)
	} else if err = secrets.Check(bundle, contract); err != nil {
		err = fmt.Errorf("secret %s: key %q: %w", ref, secrets.BundleKey, err)
	}

	if err != nil {
		return nil, copied, invalid(fmt.Errorf("TalosClusterConfig %s: spec.secretsRef: %w", config.Name, err))
	}

	return bundle, copied, k.refuseShared(ctx, others, cluster, config, bundle)
}

// readUserBundle reads the bundle that the TalosClusterConfig refers to; nil means that the Secret does not exist.
func (k *Keeper) readUserBundle(ctx context.Context, read reader, cluster *clusterv1.Cluster, config *bootstrapv1.TalosClusterConfig,
) (*secrets.Bundle, inputs.Version, error) {
	secret, err := read(ctx, keyOf(cluster, userBundle(config)))
	if secret == nil || err != nil {
		return nil, inputs.Version{}, err
	}

	bundle, _, err := secrets.FromSecret(secret, k.clock)
	if err != nil {
		return nil, inputs.Version{}, invalid(fmt.Errorf("TalosClusterConfig %s: spec.secretsRef: %w", config.Name, err))
	}

	return bundle, inputs.ContentVersion(secret), nil
}

// compareUserBundle says so when the user's bundle has changed since it was copied. That it is gone is no fault. One version of it is read
// once, and not for each machine.
func (k *Keeper) compareUserBundle(ctx context.Context, read reader, cluster *clusterv1.Cluster, config *bootstrapv1.TalosClusterConfig,
	bundle *secrets.Bundle, made *corev1.Secret,
) error {
	ref := userBundle(config)
	if ref == "" || ref == made.Name {
		return nil
	}

	current, err := k.version(ctx, keyOf(cluster, ref))
	if current == (inputs.Version{}) || err != nil {
		return err
	}

	return k.proofs.once(proof{bundle: inputs.ContentVersion(made), object: current}, func() error {
		theirs, _, err := k.readUserBundle(ctx, read, cluster, config)
		if theirs == nil || err != nil {
			return err
		}

		if err := secrets.CheckSameBundle(bundle, ref, theirs); err != nil {
			return mismatch(fmt.Errorf("TalosClusterConfig %s: spec.secretsRef: %w; Secret %s was copied from it once", config.Name, err, made.Name))
		}

		return nil
	})
}

// RefuseLost says so when nodes run with secrets that no bundle holds any more. A new bundle would give every later machine a cluster of its
// own. The Cluster's status alone does not tell: it is set only when the control plane answers, and a move drops it.
func (k *Keeper) RefuseLost(ctx context.Context, cluster *clusterv1.Cluster) error {
	_, err := k.foundInstead(ctx, cluster, k.refuseLost(ctx, cluster))

	return err
}

// foundInstead returns the bundle's Secret if the fault that it is lost does not hold, and otherwise the fault, which may be nil. A machine may be
// known before the bundle that it was rendered with: the caches of Machines and of Secrets fill independently, and another process may have
// made both since the bundle was looked for.
func (k *Keeper) foundInstead(ctx context.Context, cluster *clusterv1.Cluster, fault error) (*corev1.Secret, error) {
	if ReasonOf(fault) == "" {
		return nil, fault
	}

	existing, err := k.read(ctx, keyOf(cluster, secrets.BundleName(cluster.Name)))
	if existing != nil || err != nil {
		return existing, err
	}

	return nil, fault
}

// refuseLost is RefuseLost for a bundle that is known not to exist.
func (k *Keeper) refuseLost(ctx context.Context, cluster *clusterv1.Cluster) error {
	if Initialized(cluster) {
		return lost(cluster, fmt.Sprintf("Cluster %s is initialized", cluster.Name))
	}

	return lostTo(ctx, cluster, k.carrier)
}

// refuseLostLive is refuseLost right before a bundle is made. No cache need have seen the last machine that was given one.
func (k *Keeper) refuseLostLive(ctx context.Context, cluster *clusterv1.Cluster) error {
	if err := k.refuseLost(ctx, cluster); err != nil {
		return err
	}

	return lostTo(ctx, cluster, k.liveCarrier)
}

// lostTo says so when there is a carrier of the cluster's secrets.
func lostTo(ctx context.Context, cluster *clusterv1.Cluster, find func(context.Context, *clusterv1.Cluster) (string, error)) error {
	carrier, err := find(ctx, cluster)
	if carrier == "" || err != nil {
		return err
	}

	return lost(cluster, carries(cluster, carrier))
}

// Initialized says that the cluster's control plane answers, so that its secrets must not be made anew.
func Initialized(cluster *clusterv1.Cluster) bool {
	return ptr.Deref(cluster.Status.Initialization.ControlPlaneInitialized, false)
}

func lost(cluster *clusterv1.Cluster, because string) error {
	return &FaultError{Reason: bootstrapv1.SecretsBundleMissingReason, Err: fmt.Errorf(
		"secret %s does not exist, and %s: the cluster's secrets are not made again; restore the Secret from a backup",
		secrets.BundleName(cluster.Name), because)}
}

func carries(cluster *clusterv1.Cluster, carrier string) string {
	return fmt.Sprintf("%s of Cluster %s has bootstrap data already", carrier, cluster.Name)
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

// ReasonOf returns the reason of the SecretsBundleAvailable condition that a fault gives, empty when the error is none.
func ReasonOf(err error) string {
	if fault, ok := errors.AsType[*FaultError](err); ok {
		return fault.Reason
	}

	return ""
}
