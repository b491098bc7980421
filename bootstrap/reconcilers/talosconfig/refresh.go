// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/clustersecrets"
	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// maxRefreshed bounds what is remembered of MachinePools.
const maxRefreshed = 4096

// refreshed is what the last render for a MachinePool has come to. It holds for as long as its inputs and the Secret stay the same.
type refreshed struct {
	inputs  inputs.Fingerprint
	secret  inputs.Version
	outcome outcome
}

// refreshCache keeps the last result for each TalosConfig of a MachinePool. A new manager renders each of them once.
type refreshCache struct{ results *lru.Cache }

func newRefreshCache() *refreshCache { return &refreshCache{lru.New(maxRefreshed)} }

func (c *refreshCache) get(config types.UID, current inputs.Fingerprint, secret inputs.Version) (outcome, bool) {
	cached, _ := c.results.Get(config)
	last, ok := cached.(refreshed)

	return last.outcome, ok && last.inputs == current && last.secret == secret
}

func (c *refreshCache) set(config types.UID, current inputs.Fingerprint, secret *corev1.Secret, done outcome) {
	c.results.Add(config, refreshed{current, inputs.ContentVersion(secret), done})
}

// refresh sees to it that the Secret of a MachinePool has what its inputs give now. It writes only another config than the one
// that is there. A config that cannot be rendered leaves the Secret as it is: the instances that it has made run with it.
func (r *Reconciler) refresh(ctx context.Context, seen observation, secret *corev1.Secret) (outcome, error) {
	// A move has dropped the status; the format that the pool is pinned to is on the Secret.
	if seen.config.Status.ConfigContract == "" {
		seen.config.Status.ConfigContract = descriptionOf(secret).contract
	}

	observed, err := r.Inputs.Observe(ctx, seen.subject())
	if err != nil {
		return outcome{}, err
	}

	current, err := r.fingerprint(ctx, seen, observed)
	if err != nil {
		return outcome{}, err
	}

	if done, ok := r.refreshed.get(seen.config.UID, current, inputs.ContentVersion(secret)); ok {
		return done, nil
	}

	in, config, err := r.renderConfig(ctx, seen, observed)
	if err != nil {
		return r.keepOld(seen, secret, current, in, err)
	}

	// Without a value nobody can say what was there; an annotation that a user has changed differs from every hash.
	if len(secret.Data[dataKey]) == 0 || secret.Annotations[bootstrapv1.RenderedHashAnnotation] != config.Hash {
		updated, err := updatedSecret(secret, config, in.generations)
		if err != nil {
			return outcome{}, err
		}

		// The lock keeps a newer config that another manager has written in the meantime.
		patch := client.MergeFromWithOptions(secret, client.MergeFromWithOptimisticLock{})
		if err = r.Client.Patch(ctx, updated, patch); err != nil {
			return r.notUpdated(secret, config, err)
		}

		secret = updated

		r.deferrer.DeferNextReconcileUntilCacheUpToDate(seen.config, secretKind, secret.ResourceVersion)
		r.recordUpdated(seen.config, secret, config)
		ctrl.LoggerFrom(ctx).Info("Rendered the machine config again", "Secret", klog.KObj(secret), "contract", config.Contract.String(), "hash", config.Hash)
	}

	done := available(secret)
	r.refreshed.set(seen.config.UID, current, secret, done)

	return done, nil
}

// fingerprint is that of the inputs with the cluster's bundle, as the cache has it.
func (r *Reconciler) fingerprint(ctx context.Context, seen observation, observed inputs.Observed) (inputs.Fingerprint, error) {
	bundle := &corev1.Secret{}

	err := r.Client.Get(ctx, client.ObjectKey{Namespace: seen.cluster.Namespace, Name: secrets.BundleName(seen.cluster.Name)}, bundle)
	if apierrors.IsNotFound(err) {
		bundle, err = nil, nil
	}

	if err != nil {
		return inputs.Fingerprint{}, fmt.Errorf("secret %s: %w", secrets.BundleName(seen.cluster.Name), err)
	}

	return r.Inputs.Fingerprint(ctx, observed, inputs.ContentVersion(bundle), seen.config.Status.ConfigContract)
}

// keepOld reports a config that cannot be rendered, beside a Secret that can be used.
func (r *Reconciler) keepOld(seen observation, secret *corev1.Secret, current inputs.Fingerprint, in renderInputs, err error) (outcome, error) {
	fault, err := failed(in, err)
	if fault == (outcome{}) {
		return fault, err
	}

	done := r.keep(secret)
	done.rendered = fault.rendered

	if fault.bundle != (verdict{}) {
		done.bundle = fault.bundle
	}

	// What is wrong with the cluster's secrets may be mended in a Secret that the fingerprint does not know of.
	if clustersecrets.ReasonOf(err) == "" {
		r.refreshed.set(seen.config.UID, current, secret, done)
	}

	return done, err
}

// notUpdated reports that the API server has not taken the new config. It is tried again.
func (r *Reconciler) notUpdated(secret *corev1.Secret, config machineconfig.Config, err error) (outcome, error) {
	refused := secret.DeepCopy()
	refused.Data = map[string][]byte{dataKey: config.Bytes}
	err = secrets.WithoutValues(refused, err)
	fault := fmt.Errorf("secret %s: update: %w", secret.Name, err)

	if !secrets.IsRefusal(err) {
		return outcome{}, fault
	}

	done := r.keep(secret)
	done.rendered = bad(bootstrapv1.TalosConfigRenderFailedReason, shorten(fmt.Sprintf("The API server refuses the new content of Secret %s: %s", secret.Name, err)))

	return done, fault
}

// updatedSecret is the Secret with another config. The cache has no values, so whatever else is in the Secret stays.
func updatedSecret(secret *corev1.Secret, config machineconfig.Config, generations map[machineconfig.ObjectKey]int64) (*corev1.Secret, error) {
	annotations, err := describe(config, generations)
	if err != nil {
		return nil, err
	}

	updated := secret.DeepCopy()
	if updated.Annotations == nil {
		updated.Annotations = map[string]string{}
	}

	maps.Copy(updated.Annotations, annotations)

	if updated.Data == nil {
		updated.Data = map[string][]byte{}
	}

	updated.Data[dataKey] = config.Bytes

	return updated, nil
}
