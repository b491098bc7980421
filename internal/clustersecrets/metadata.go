// SPDX-License-Identifier: Apache-2.0

package clustersecrets

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// belongs says whether the Cluster owns the Secret, so that it is moved and deleted with it, and whether it has the label, so that the
// cache has it.
func belongs(secret *corev1.Secret, cluster *clusterv1.Cluster) bool {
	return secret.Labels[clusterv1.ClusterNameLabel] == cluster.Name && ownedBy(secret, cluster)
}

func ownedBy(secret *corev1.Secret, cluster *clusterv1.Cluster) bool {
	return slices.ContainsFunc(secret.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == cluster.UID })
}

// own gives a Secret that somebody else has made, such as another Talos provider, a user or a restored backup, what our own have from the
// start: label and owner. A pin is set as the contract annotation unless it is empty or one is set. It writes only what is missing. It is a
// conflict when somebody else has set another pin in the meantime: whoever was about to render with this one must choose again.
func (k *Keeper) own(ctx context.Context, cluster *clusterv1.Cluster, secret *corev1.Secret, pin string) error {
	chosen := pin != "" && secret.Annotations[secrets.ConfigContractAnnotation] == ""

	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		wanted := owned(secret, cluster, pin)
		if wanted == nil {
			return nil
		}

		// The lock keeps what somebody else has set in the meantime: a pin is set once.
		err := k.client.Patch(ctx, wanted, client.MergeFromWithOptions(secret, client.MergeFromWithOptimisticLock{}))
		if !apierrors.IsConflict(err) {
			return err
		}

		// Another worker or process may have done a part of it. If the Secret is gone, so is what there was to do.
		changed, readErr := k.read(ctx, client.ObjectKeyFromObject(secret))
		if changed == nil {
			return readErr
		}

		secret = changed

		return err
	})

	if theirs := secret.Annotations[secrets.ConfigContractAnnotation]; err == nil && chosen && theirs != "" && theirs != pin {
		return apierrors.NewConflict(corev1.Resource("secrets"), secret.Name, fmt.Errorf("has been pinned to config contract %.6q in the meantime", theirs))
	}

	return refusal(secret, "set its owner and label", err)
}

// owned returns the Secret as it should be, nil when it is.
func owned(secret *corev1.Secret, cluster *clusterv1.Cluster, pin string) *corev1.Secret {
	if secret.Annotations[secrets.ConfigContractAnnotation] != "" {
		pin = ""
	}

	if pin == "" && belongs(secret, cluster) {
		return nil
	}

	wanted := secret.DeepCopy()

	// The reference to the Cluster under another UID, which a restored backup may have, is replaced: the garbage collector would take
	// the Secret for one whose owner is gone.
	if !ownedBy(secret, cluster) {
		wanted.OwnerReferences = util.EnsureOwnerRef(wanted.OwnerReferences, referenceTo(cluster))
	}

	metav1.SetMetaDataLabel(&wanted.ObjectMeta, clusterv1.ClusterNameLabel, cluster.Name)

	if pin != "" {
		metav1.SetMetaDataAnnotation(&wanted.ObjectMeta, secrets.ConfigContractAnnotation, pin)
	}

	return wanted
}

func referenceTo(cluster *clusterv1.Cluster) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(),
		Kind:       clusterv1.ClusterKind,
		Name:       cluster.Name,
		UID:        cluster.UID,
	}
}

// isLeftover says whether the Secret belongs to a Cluster of the same name and another UID, and not to this one.
func isLeftover(secret *corev1.Secret, cluster *clusterv1.Cluster) bool {
	return !ownedBy(secret, cluster) && slices.ContainsFunc(secret.OwnerReferences, func(ref metav1.OwnerReference) bool {
		group, _, _ := strings.Cut(ref.APIVersion, "/")

		return group == clusterv1.GroupVersion.Group && ref.Kind == clusterv1.ClusterKind && ref.Name == cluster.Name
	})
}

// refuseLeftovers tells the Secrets of a restored cluster, whose machines carry them, from those of a deleted one, which the garbage
// collector is about to take: a new cluster of the name must not begin with the old one's secrets.
func (k *Keeper) refuseLeftovers(ctx context.Context, cluster *clusterv1.Cluster, all []*corev1.Secret) error {
	at := slices.IndexFunc(all, func(secret *corev1.Secret) bool { return isLeftover(secret, cluster) })
	if at < 0 {
		return nil
	}

	carrier, err := k.carrier(ctx, cluster)
	if carrier != "" || err != nil {
		return err
	}

	return leftover(all[at], cluster)
}

// RefuseLeftover is refuseLeftovers for a Secret that Find returned: it may be one that no cache has.
func (k *Keeper) RefuseLeftover(ctx context.Context, cluster *clusterv1.Cluster, secret *corev1.Secret) error {
	return k.refuseLeftovers(ctx, cluster, []*corev1.Secret{secret})
}

// refuseMachines tells a Secret of the cluster from a machine's bootstrap data that stands in its place: a machine whose config has the name
// of the Secret was there before the cluster.
func refuseMachines(secret *corev1.Secret) error {
	config := secrets.MachineOf(secret)
	if config == "" {
		return nil
	}

	return &FaultError{Reason: bootstrapv1.SecretsBundleMismatchReason, Err: fmt.Errorf(
		"secret %s: holds the bootstrap data of %s, and has the name of a Secret of the cluster: replace that machine by one whose config "+
			"has another name, or give the Cluster another name", secret.Name, config)}
}

func leftover(secret *corev1.Secret, cluster *clusterv1.Cluster) error {
	return &FaultError{Reason: bootstrapv1.SecretsBundleMismatchReason, Leftover: true, Err: fmt.Errorf(
		"secret %s: belongs to an earlier Cluster %s, and no machine of this one carries its content: it is not reused; it goes with its owner, "+
			"or delete it; to keep it, remove the owner reference", secret.Name, cluster.Name)}
}
