// SPDX-License-Identifier: Apache-2.0

package clustersecrets

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// talosconfigLife is how long an administrator's certificate is valid.
const talosconfigLife = 365 * 24 * time.Hour

// reader reads one Secret, nil when there is none.
type reader func(context.Context, client.ObjectKey) (*corev1.Secret, error)

// ensure sees to the Secrets that are made of the bundle for others to read, and that the Cluster owns them and the bundle's. One that
// says something else than the bundle is a fault: nobody would trust what is signed with it.
func (k *Keeper) ensure(ctx context.Context, cluster *clusterv1.Cluster, bundleSecret *corev1.Secret, bundle *secrets.Bundle, pin string) error {
	found, err := k.derived(ctx, k.cached, cluster, bundle, inputs.ContentVersion(bundleSecret))
	if err != nil {
		return err
	}

	settled := len(found) == len(derivedNames(cluster)) && owned(bundleSecret, cluster, pin) == nil
	for _, secret := range found {
		settled = settled && belongs(secret, cluster)
	}

	if settled {
		return nil
	}

	// All workers that render the cluster's first machines come through here at once. One without a pin must not stand in for one with it.
	_, err, _ = k.making.Do(string(cluster.UID)+"/derived/"+pin, func() (any, error) {
		return nil, k.complete(ctx, cluster, bundleSecret, bundle, pin)
	})

	return err
}

// derivedNames are the names of the Secrets that are made of the bundle.
func derivedNames(cluster *clusterv1.Cluster) []string {
	return append(secrets.AuthorityNames(cluster.Name), secrets.TalosconfigName(cluster.Name))
}

// derived returns those of the Secrets that exist. They agree with the bundle.
func (k *Keeper) derived(ctx context.Context, read reader, cluster *clusterv1.Cluster, bundle *secrets.Bundle, made inputs.Version,
) (map[string]*corev1.Secret, error) {
	found := map[string]*corev1.Secret{}

	for _, name := range derivedNames(cluster) {
		secret, err := read(ctx, keyOf(cluster, name))
		if err != nil {
			return nil, err
		}

		if secret == nil {
			continue
		}

		if err := k.agrees(cluster, bundle, made, secret); err != nil {
			return nil, err
		}

		found[name] = secret
	}

	return found, nil
}

// agrees says what is wrong with a Secret that exists. A talosconfig may be a user's own; see renew.
func (k *Keeper) agrees(cluster *clusterv1.Cluster, bundle *secrets.Bundle, made inputs.Version, secret *corev1.Secret) error {
	if err := refuseMachines(secret); err != nil {
		return err
	}

	err := k.proofs.once(proof{bundle: made, object: inputs.ContentVersion(secret)}, func() error {
		return secrets.CheckSupplied(bundle, cluster.Name, secret)
	})
	if _, differs := errors.AsType[*secrets.MismatchError](err); err != nil && !differs {
		err = fmt.Errorf("%w: delete the Secret, and it is made again from the bundle", err)
	}

	if err != nil {
		return mismatch(err)
	}

	return nil
}

// complete makes what is missing. It looks at everything before it writes anything.
func (k *Keeper) complete(ctx context.Context, cluster *clusterv1.Cluster, bundleSecret *corev1.Secret, bundle *secrets.Bundle, pin string) error {
	found, err := k.derived(ctx, k.find, cluster, bundle, inputs.ContentVersion(bundleSecret))
	if err != nil {
		return err
	}

	made, err := k.make(cluster, bundle, found)
	if err != nil {
		return err
	}

	all := []*corev1.Secret{bundleSecret}
	for _, secret := range found {
		all = append(all, secret)
	}

	if err := k.refuseLeftovers(ctx, cluster, all); err != nil {
		return err
	}

	if err := k.own(ctx, cluster, bundleSecret, pin); err != nil {
		return err
	}

	for _, secret := range found {
		if err := k.own(ctx, cluster, secret, ""); err != nil {
			return err
		}
	}

	for _, secret := range made {
		if err := k.createDerived(ctx, cluster, bundle, inputs.ContentVersion(bundleSecret), secret); err != nil {
			return err
		}
	}

	return nil
}

// make returns the Secrets that are not among those found, in the order of their names' list.
func (k *Keeper) make(cluster *clusterv1.Cluster, bundle *secrets.Bundle, found map[string]*corev1.Secret) ([]*corev1.Secret, error) {
	var made []*corev1.Secret

	authorities, err := secrets.AuthoritySecrets(cluster, bundle)
	if err != nil {
		return nil, invalid(err)
	}

	for _, secret := range authorities {
		if found[secret.Name] == nil {
			made = append(made, secret)
		}
	}

	if found[secrets.TalosconfigName(cluster.Name)] != nil {
		return made, nil
	}

	// It holds no endpoints: no node has an address before it has a config.
	data, err := secrets.Talosconfig(bundle, cluster.Name, nil, talosconfigLife, k.clock.Now())
	if err != nil {
		return nil, invalid(err)
	}

	secret, err := secrets.TalosconfigSecret(cluster, data)
	if err != nil {
		return nil, invalid(err)
	}

	return append(made, secret), nil
}

// createDerived creates the Secret, or takes the one that somebody else has created in the meantime if it agrees with the bundle.
func (k *Keeper) createDerived(ctx context.Context, cluster *clusterv1.Cluster, bundle *secrets.Bundle, made inputs.Version, secret *corev1.Secret) error {
	existing, err := k.create(ctx, secret)
	if err != nil {
		return err
	}

	if existing == nil {
		ctrl.LoggerFrom(ctx).Info("Created a Secret of the cluster's secrets bundle", "Secret", klog.KObj(secret))

		return nil
	}

	if err := k.agrees(cluster, bundle, made, existing); err != nil {
		return err
	}

	return k.own(ctx, cluster, existing, "")
}
