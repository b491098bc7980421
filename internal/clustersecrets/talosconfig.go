// SPDX-License-Identifier: Apache-2.0

package clustersecrets

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
)

// Keep sees to the secrets of a cluster that has a bundle: everything that goes with it is there and agrees with it, and the talosconfig
// is renewed at half-life, when the authority changes and when a user asks. It returns when to come again, zero for never. A cluster whose
// bundle has not been made is left alone; that one is lost is a *FaultError, as is everything else that the user must mend.
func (k *Keeper) Keep(ctx context.Context, cluster *clusterv1.Cluster) (next time.Time, err error) {
	secret, err := k.Find(ctx, cluster)
	if err != nil {
		return time.Time{}, err
	}

	if secret == nil {
		return time.Time{}, k.RefuseLost(ctx, cluster)
	}

	// What a bundle must have is the same for every contract.
	bundle, err := k.decode(secret, version.Newest())
	if err != nil {
		return time.Time{}, err
	}

	if err := k.ensure(ctx, cluster, secret, bundle, ""); err != nil {
		return time.Time{}, err
	}

	talosconfig, err := k.find(ctx, keyOf(cluster, secrets.TalosconfigName(cluster.Name)))
	if talosconfig == nil || err != nil {
		return time.Time{}, err
	}

	return k.renew(ctx, cluster, bundle, talosconfig)
}

// renew makes the talosconfig anew if it must be.
func (k *Keeper) renew(ctx context.Context, cluster *clusterv1.Cluster, bundle *secrets.Bundle, secret *corev1.Secret) (time.Time, error) {
	now := k.clock.Now()
	review := secrets.ReviewTalosconfig(secret, cluster.Name, bundle, now)
	wanted := secret.DeepCopy()

	switch {
	case review.Foreign:
		return time.Time{}, mismatch(fmt.Errorf(
			"secret %s: key %q: %s; it was not made here and is left as it is: delete the Secret, and a new one is made, or set the annotation %s on it",
			secret.Name, secrets.TalosconfigKey, review.Reason, secrets.RotateAnnotation))
	case !review.Renew:
		if !secrets.SettleRotation(wanted) {
			return review.Next, nil
		}
	default:
		if ptr.Deref(secret.Immutable, false) {
			return time.Time{}, mismatch(fmt.Errorf("secret %s: key %q: %s, but the Secret is immutable: delete it, and a new one is made",
				secret.Name, secrets.TalosconfigKey, review.Reason))
		}

		data, err := secrets.RenewTalosconfig(secret.Data[secrets.TalosconfigKey], bundle, cluster.Name, talosconfigLife, now)
		if err != nil {
			return time.Time{}, invalid(err)
		}

		if err := secrets.SetTalosconfig(wanted, cluster.Name, data); err != nil {
			return time.Time{}, invalid(err)
		}
	}

	// The lock keeps what somebody else has written in the meantime: of two that renew it, one does.
	patch := client.MergeFromWithOptions(secret, client.MergeFromWithOptimisticLock{})
	if err := k.client.Patch(ctx, wanted, patch); err != nil {
		return time.Time{}, refusal(wanted, "renew", err)
	}

	if review.Renew {
		k.recordRenewed(cluster, wanted, review.Reason)
		ctrl.LoggerFrom(ctx).Info("Made a new client certificate for the Talos API", "Secret", klog.KObj(wanted), "because", review.Reason)
	}

	return secrets.ReviewTalosconfig(wanted, cluster.Name, bundle, now).Next, nil
}
