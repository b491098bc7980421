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
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

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

// has says whether the same inputs have been looked at before, with the Secret as it was then.
func (c *refreshCache) has(config types.UID, current inputs.Fingerprint) bool {
	cached, _ := c.results.Get(config)
	last, ok := cached.(refreshed)

	return ok && last.inputs == current
}

func (c *refreshCache) set(config types.UID, current inputs.Fingerprint, secret *corev1.Secret, done outcome) {
	c.results.Add(config, refreshed{current, inputs.ContentVersion(secret), done})
}

// refresh sees to it that the Secret of a MachinePool has what its inputs give now. It writes only when an input has changed since the
// Secret was rendered: a newer Ichor may render the same inputs into other bytes, and infrastructure providers that notice replace every
// instance. A config that cannot be rendered leaves the Secret as it is: the instances that it has made run with it.
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

	// The fingerprint knows the bundle alone; what is made of it must agree with it, too.
	if _, err := r.Secrets.Look(ctx, seen.cluster, seen.owner.String()); err != nil {
		return r.keepOld(seen, secret, current, renderInputs{}, err)
	}

	if done, ok := r.refreshed.get(seen.config.UID, current, inputs.ContentVersion(secret)); ok {
		return done, nil
	}

	in, err := r.resolve(ctx, seen, observed)
	if err != nil {
		return r.keepOld(seen, secret, current, in, err)
	}

	// Another manager has written what it makes of the same inputs, of which it may know more: the Secret would be written by turns for as long as
	// both run. It has been looked at here before, so that each of them writes once for a change.
	if !isRenderedFrom(secret, in.fingerprint) && isRendered(secret) && r.refreshed.has(seen.config.UID, current) {
		ctrl.LoggerFrom(ctx).Info("Another manager has rendered the machine config from the same inputs, and is left alone", "Secret", klog.KObj(secret))
	} else if !isRenderedFrom(secret, in.fingerprint) {
		config, err := r.renderConfig(ctx, in)
		if err != nil {
			return r.keepOld(seen, secret, current, in, err)
		}

		updated, done, err := r.update(ctx, seen, secret, config, in)
		if updated == nil || err != nil {
			return done, err
		}

		secret = updated
	}

	done := available(secret)
	r.refreshed.set(seen.config.UID, current, secret, done)

	return done, nil
}

// isRenderedFrom says whether the Secret has a config that was rendered from the inputs.
func isRenderedFrom(secret *corev1.Secret, fingerprint string) bool {
	return isRendered(secret) && fingerprint != "" && secret.Annotations[bootstrapv1.InputsFingerprintAnnotation] == fingerprint
}

// isRendered says whether the Secret has a config and says what that was rendered from. One without a value or a hash was damaged.
func isRendered(secret *corev1.Secret) bool {
	return !isEmpty(secret) && descriptionOf(secret).hash != "" && secret.Annotations[bootstrapv1.InputsFingerprintAnnotation] != ""
}

// update writes the config into the Secret, and returns the Secret as it is then. When it has the config already, only what that was rendered
// from is noted. Nil: it was not written, because of what the outcome says, or of a pause.
func (r *Reconciler) update(ctx context.Context, seen observation, secret *corev1.Secret, config machineconfig.Config, in renderInputs,
) (*corev1.Secret, outcome, error) {
	updated, err := updatedSecret(secret, config, in)
	if err != nil {
		return nil, outcome{}, err
	}

	// Without a value nobody can say what was there; an annotation that a user has changed differs from every hash.
	other := isEmpty(secret) || secret.Annotations[bootstrapv1.RenderedHashAnnotation] != config.Hash

	switch {
	case other && ptr.Deref(secret.Immutable, false):
		done, err := cannotFollow(seen, secret)

		return nil, done, err
	case other:
		updated.Data[dataKey] = config.Bytes
	case maps.Equal(secret.Annotations, updated.Annotations):
		return secret, outcome{}, nil
	}

	if paused, err := r.isPausedNow(ctx, seen); paused || err != nil {
		return nil, outcome{}, err
	}

	if err = r.Secrets.Stands(ctx, in.bundle); err != nil {
		return nil, outcome{}, err
	}

	// The lock keeps a newer config that another manager has written in the meantime.
	patch := client.MergeFromWithOptions(secret, client.MergeFromWithOptimisticLock{})
	if err = r.Client.Patch(ctx, updated, patch); err != nil {
		done, err := notUpdated(secret, err)

		return nil, done, err
	}

	r.deferrer.DeferNextReconcileUntilCacheUpToDate(seen.config, secretKind, updated.ResourceVersion)

	if other {
		r.recordUpdated(seen.config, updated, config)
		ctrl.LoggerFrom(ctx).Info("Rendered the machine config again", "Secret", klog.KObj(updated), "contract", config.Contract.String(), "hash", config.Hash)
	}

	return updated, outcome{}, nil
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

	done := kept(secret)
	done.rendered = fault.rendered

	// What is not known of the secrets is not said.
	done.bundle = fault.bundle

	// What is wrong with the cluster's secrets may be mended in a Secret that the fingerprint does not know of.
	if clustersecrets.ReasonOf(err) == "" {
		r.refreshed.set(seen.config.UID, current, secret, done)
	}

	return done, err
}

// notUpdated reports that the API server has not taken the new config. It is tried again.
func notUpdated(secret *corev1.Secret, err error) (outcome, error) {
	err = secrets.WithoutWords(err)
	fault := fmt.Errorf("secret %s: update: %w", secret.Name, err)

	// Another manager was faster, or the Secret is gone: it is looked at again.
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return outcome{}, fault
	}

	said := fmt.Sprintf("The new content of Secret %s cannot be written yet: the API server answers %s; it is tried again", secret.Name, secrets.AnswerOf(err))
	if secrets.IsRefusal(err) {
		said = fmt.Sprintf("The API server refuses the new content of Secret %s: %s", secret.Name, err)
	}

	done := kept(secret)
	done.rendered = bad(bootstrapv1.TalosConfigRenderFailedReason, said)

	return done, fault
}

// cannotFollow reports that the Secret cannot be changed. Its deletion is seen.
func cannotFollow(seen observation, secret *corev1.Secret) (outcome, error) {
	fault := fmt.Errorf("secret %s: is immutable and cannot follow the inputs of %s %s: delete it, and it is made again",
		secret.Name, seen.owner.machine.Kind, seen.owner.machine.Name)

	done := kept(secret)
	done.rendered = bad(bootstrapv1.TalosConfigRenderFailedReason, fault.Error())

	return done, reconcile.TerminalError(fault)
}

// updatedSecret is the Secret with what is said of another config, and room for that. The cache has no values, so whatever else is in the
// Secret stays.
func updatedSecret(secret *corev1.Secret, config machineconfig.Config, in renderInputs) (*corev1.Secret, error) {
	annotations, err := describe(secret.Name, config, in)
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

	return updated, nil
}
