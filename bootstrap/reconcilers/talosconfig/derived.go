// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// ensureBundleMetadata gives a bundle Secret that somebody else has made, such as another Talos provider or a user, what
// our own has from the start: label, owner, and the contract of the cluster's first render.
func (r *Reconciler) ensureBundleMetadata(ctx context.Context, seen observation, config *bootstrapv1.TalosClusterConfig, secret *corev1.Secret) error {
	pin := ""

	if secret.Annotations[secrets.ConfigContractAnnotation] == "" {
		if contract := clusterPin(config); !contract.IsZero() {
			pin = contract.String()
		}
	}

	// All workers that render the cluster's first machines come through here at once.
	_, err, _ := r.minting.Do(string(seen.cluster.UID)+"/metadata", func() (any, error) {
		return nil, r.ensureMetadata(ctx, seen.cluster, secret, pin)
	})

	return err
}

// ensureMetadata makes the Cluster an owner of the Secret, so that it is moved and deleted with it, and labels it, so that
// the cache has it. A pin is set as the contract annotation unless it is empty. It writes only what is missing.
func (r *Reconciler) ensureMetadata(ctx context.Context, cluster *clusterv1.Cluster, secret *corev1.Secret, pin string) error {
	wanted := secret.DeepCopy()

	owned := slices.ContainsFunc(secret.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == cluster.UID })
	if !owned {
		wanted.OwnerReferences = util.EnsureOwnerRef(wanted.OwnerReferences, clusterReference(cluster))
	}

	if wanted.Labels[clusterv1.ClusterNameLabel] != cluster.Name {
		metav1.SetMetaDataLabel(&wanted.ObjectMeta, clusterv1.ClusterNameLabel, cluster.Name)
	}

	if pin != "" {
		metav1.SetMetaDataAnnotation(&wanted.ObjectMeta, secrets.ConfigContractAnnotation, pin)
	}

	if equality.Semantic.DeepEqual(secret.ObjectMeta, wanted.ObjectMeta) {
		return nil
	}

	// The lock keeps what somebody else has set in the meantime: a pin is set once.
	patch := client.MergeFromWithOptions(secret, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, wanted, patch); err != nil {
		return fmt.Errorf("secret %s: set its owner and label: %w", secret.Name, err)
	}

	return nil
}

func clusterReference(cluster *clusterv1.Cluster) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(),
		Kind:       clusterv1.ClusterKind,
		Name:       cluster.Name,
		UID:        cluster.UID,
	}
}

// ensureDerived sees to the Secrets that are made of the bundle for others to read: the certificate authorities, and the
// talosconfig. One that says something else than the bundle is a fault: nobody would trust what is signed with it.
func (r *Reconciler) ensureDerived(ctx context.Context, seen observation, bundle *secrets.Bundle, made secretVersion) error {
	authorities := sync.OnceValues(func() ([]*corev1.Secret, error) { return secrets.AuthoritySecrets(seen.cluster, bundle) })

	for i, name := range secrets.AuthorityNames(seen.cluster.Name) {
		want := derived{
			name: name,
			secret: func() (*corev1.Secret, error) {
				all, err := authorities()
				if err != nil {
					return nil, &bundleError{reason: bootstrapv1.SecretsBundleInvalidReason, err: err}
				}

				return all[i], nil
			},
			agrees: func(found *corev1.Secret) error {
				return r.proofs.once(proof{bundle: made, object: versionOf(found)}, func() error {
					return secrets.CheckSupplied(bundle, seen.cluster.Name, found)
				})
			},
		}

		if err := r.ensureSecret(ctx, seen, want); err != nil {
			return err
		}
	}

	return r.ensureSecret(ctx, seen, r.talosconfig(seen, bundle))
}

// derived is a Secret that is made of the bundle.
type derived struct {
	name string

	// secret makes it. It is called only when it does not exist.
	secret func() (*corev1.Secret, error)

	// agrees says what is wrong with one that exists.
	agrees func(*corev1.Secret) error
}

// talosconfigLife is how long an administrator's certificate is valid.
const talosconfigLife = 365 * 24 * time.Hour

// talosconfig is an administrator's. It holds no endpoints: no node has an address before it has a config.
func (r *Reconciler) talosconfig(seen observation, bundle *secrets.Bundle) derived {
	return derived{
		name: secrets.TalosconfigName(seen.cluster.Name),
		secret: func() (*corev1.Secret, error) {
			data, err := secrets.Talosconfig(bundle, seen.cluster.Name, nil, talosconfigLife, r.Clock.Now())
			if err != nil {
				return nil, &bundleError{reason: bootstrapv1.SecretsBundleInvalidReason, err: err}
			}

			return secrets.TalosconfigSecret(seen.cluster, data), nil
		},
		// Each one that is made has a key of its own.
		agrees: func(*corev1.Secret) error { return nil },
	}
}

// ensureSecret creates the Secret if it does not exist, and otherwise checks that it agrees with the bundle.
func (r *Reconciler) ensureSecret(ctx context.Context, seen observation, want derived) error {
	found := &corev1.Secret{}

	err := r.Client.Get(ctx, client.ObjectKey{Namespace: seen.cluster.Namespace, Name: want.name}, found)
	if err == nil {
		return disagreement(want.agrees(found))
	}

	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("secret %s: %w", want.name, err)
	}

	_, err, _ = r.minting.Do(string(seen.cluster.UID)+"/"+want.name, func() (any, error) {
		return nil, r.createSecret(ctx, seen, want)
	})

	return err
}

// createSecret creates the Secret. If the cache only lacked it, it gets the label, unless it is another cluster's.
func (r *Reconciler) createSecret(ctx context.Context, seen observation, want derived) error {
	secret, err := want.secret()
	if err != nil {
		return err
	}

	err = r.Client.Create(ctx, secret)
	if err == nil {
		return nil
	}

	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("secret %s: create: %w", want.name, err)
	}

	existing, err := r.readSecret(ctx, client.ObjectKeyFromObject(secret))
	if err != nil {
		return err
	}

	if existing == nil {
		return fmt.Errorf("secret %s: it was deleted right after it had been created", want.name)
	}

	if err := want.agrees(existing); err != nil {
		return disagreement(err)
	}

	return r.ensureMetadata(ctx, seen.cluster, existing, "")
}

// disagreement is the fault of a Secret that says something else than the bundle, or nothing that can be read.
func disagreement(err error) error {
	if err == nil {
		return nil
	}

	return &bundleError{reason: bootstrapv1.SecretsBundleMismatchReason, err: err}
}
