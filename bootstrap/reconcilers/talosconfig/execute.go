// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capicontroller "sigs.k8s.io/cluster-api/util/controller"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/metrics"
	"github.com/maesh-dev/ichor/internal/clustersecrets"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/prose"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// dataKey is the key of the machine config in the data Secret, as Cluster API's bootstrap contract has it.
const dataKey = "value"

// execute does the step, and returns what is to be reported. A fault that only a user can mend is a terminal error: a
// change of the object at fault wakes the TalosConfig, nothing else would help.
func (r *Reconciler) execute(ctx context.Context, seen observation, next step) (outcome, error) {
	switch next := next.(type) {
	case wait:
		ctrl.LoggerFrom(ctx).V(3).Info(next.message)

		return waiting(next), nil
	case keep:
		return r.keep(ctx, seen, next.secret)
	case refresh:
		return r.refresh(ctx, seen, next.secret)
	case claim:
		return r.claim(ctx, seen, next.secret)
	case adopt:
		return adopted(next.name, seen.owner.machine.Kind), nil
	case refuse:
		return refused(next), reconcile.TerminalError(errors.New(next.message))
	case forgo:
		return forgone(seen.config.Name, next.message), nil
	case render:
		return r.render(ctx, seen, next.again)
	}

	return outcome{}, fmt.Errorf("step %T is not known", next)
}

// keep reports what the Secret says of itself, so that a status that was lost in a move comes back, and how the cluster's secrets are.
func (r *Reconciler) keep(ctx context.Context, seen observation, secret *corev1.Secret) (outcome, error) {
	done := kept(secret)
	done.bundle = verdict{}

	if seen.cluster == nil || !seen.cluster.DeletionTimestamp.IsZero() {
		return done, nil
	}

	known, err := r.Secrets.Look(ctx, seen.cluster, seen.owner.String())

	switch fault, isFault := errors.AsType[*clustersecrets.FaultError](err); {
	case isFault:
		done.bundle = bad(fault.Reason, prose.Shorten(fault.Error()))
	case err != nil:
		return outcome{}, err
	case known:
		done.bundle = good(bootstrapv1.SecretsBundleAvailableReason, "")
	}

	return done, nil
}

// isEmpty says whether the Secret has no config. The cache does not have the value, but something in its place unless it is empty.
func isEmpty(secret *corev1.Secret) bool { return len(secret.Data[dataKey]) == 0 }

// kept is what a Secret says of itself.
func kept(secret *corev1.Secret) outcome {
	if isEmpty(secret) {
		return damaged(secret.Name)
	}

	return available(secret)
}

// claim makes the TalosConfig the controlling owner, in place of its former self, and labels the Secret, so that the cache
// has it. Only metadata is patched: values are not in the cache.
func (r *Reconciler) claim(ctx context.Context, seen observation, secret *corev1.Secret) (outcome, error) {
	claimed := secret.DeepCopy()
	claimed.OwnerReferences = append(slices.DeleteFunc(claimed.OwnerReferences, func(ref metav1.OwnerReference) bool {
		return isFormerSelf(ref, seen.config)
	}), controllerReference(seen.config))
	metav1.SetMetaDataLabel(&claimed.ObjectMeta, clusterv1.ClusterNameLabel, seen.owner.clusterName)

	// The lock keeps an owner that somebody else has set in the meantime.
	patch := client.MergeFromWithOptions(secret, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, claimed, patch); err != nil {
		return r.notClaimed(ctx, seen, secret, secrets.WithoutWords(err))
	}

	r.deferrer.DeferNextReconcileUntilCacheUpToDate(seen.config, secretKind, claimed.ResourceVersion)
	r.recordClaimed(seen.config, claimed)

	return r.keep(ctx, seen, claimed)
}

// notClaimed reports that the API server has not let the TalosConfig own its Secret. It is tried again. A machine that has joined needs the
// Secret no more, and is ready without.
func (r *Reconciler) notClaimed(ctx context.Context, seen observation, secret *corev1.Secret, err error) (outcome, error) {
	fault := fmt.Errorf("secret %s: set its owner: %w", secret.Name, err)

	switch {
	case seen.owner.joined:
		done, keepErr := r.keep(ctx, seen, secret)

		return done, errors.Join(fault, keepErr)
	case secrets.IsRefusal(err):
		return outcome{dataSecret: bad(bootstrapv1.TalosConfigDataSecretNotAvailableReason, fmt.Sprintf(
			"The API server refuses that the TalosConfig owns Secret %s, which would be deleted without it: %s", secret.Name, err))}, fault
	default:
		return outcome{}, fault
	}
}

// behindError says that a cache is behind what the config is rendered from. That ends in a moment.
type behindError struct{ object string }

func (e *behindError) Error() string {
	return e.object + ": the manager's cache has not seen yet how it is: the config is rendered when it has"
}

// render makes the config and the Secret.
func (r *Reconciler) render(ctx context.Context, seen observation, again bool) (outcome, error) {
	// A machine boots once from what is rendered now. What was there before it is in its config, however fast one came after the other.
	behind, err := r.Inputs.Behind(ctx, seen.config.Namespace)
	if err != nil {
		return outcome{}, err
	}

	if behind != "" {
		return outcome{}, &behindError{behind}
	}

	observed, err := r.Inputs.Observe(ctx, seen.subject())
	if err != nil {
		return outcome{}, err
	}

	in, err := r.resolve(ctx, seen, observed)
	if err != nil {
		return failed(in, err)
	}

	config, err := r.renderConfig(ctx, in)
	if err != nil {
		return failed(in, err)
	}

	secret, err := dataSecret(seen, config, in)
	if err != nil {
		return outcome{}, err
	}

	if paused, err := r.isPausedNow(ctx, seen); paused || err != nil {
		return outcome{}, err
	}

	if err = r.Secrets.Stands(ctx, in.bundle); err != nil {
		return outcome{}, err
	}

	if err = r.Client.Create(ctx, secret); apierrors.IsAlreadyExists(err) {
		return r.meet(ctx, seen)
	}

	if err != nil {
		return r.notCreated(ctx, secret, err)
	}

	r.deferrer.DeferNextReconcileUntilCacheUpToDate(seen.config, secretKind, secret.ResourceVersion)
	r.recordCreated(seen.config, secret, config, again)
	ctrl.LoggerFrom(ctx).Info("Rendered the machine config", "Secret", klog.KObj(secret), "contract", config.Contract.String(), "hash", config.Hash)

	return available(secret), nil
}

// renderConfig renders the config of resolved inputs.
func (r *Reconciler) renderConfig(ctx context.Context, in renderInputs) (machineconfig.Config, error) {
	began := r.Clock.Now()
	config, err := machineconfig.Render(in.render)
	metrics.RenderTook(r.Clock.Since(began))

	if err != nil {
		return machineconfig.Config{}, err
	}

	for _, warning := range config.Warnings {
		ctrl.LoggerFrom(ctx).Info("Rendered with a warning", "warning", warning)
	}

	return config, nil
}

// meet handles a Secret of the name that the cache did not have: one that another manager has just written, or one
// without the cluster-name label.
func (r *Reconciler) meet(ctx context.Context, seen observation) (outcome, error) {
	secret := &corev1.Secret{}
	if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(seen.config), secret); err != nil {
		// Deleted again: the next try creates it.
		return outcome{}, &secrets.ReadError{Object: "Secret " + seen.config.Name, Err: err}
	}

	seen.secret = secret

	return r.execute(ctx, seen, decideSecret(seen))
}

// The kinds of which the cache must have seen a write before the next reconcile.
var (
	secretKind = capicontroller.StructuredObject(corev1.SchemeGroupVersion, machineconfig.KindSecret)
	configKind = capicontroller.StructuredObject(bootstrapv1.GroupVersion, machineconfig.KindTalosConfig)
)

// dataSecret is the Secret that Cluster API hands to the infrastructure provider. Its annotations are what the status
// says of the config, since a move drops the status.
func dataSecret(seen observation, config machineconfig.Config, in renderInputs) (*corev1.Secret, error) {
	annotations, err := describe(seen.config.Name, config, in)
	if err != nil {
		return nil, err
	}

	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:            seen.config.Name,
			Namespace:       seen.config.Namespace,
			Labels:          map[string]string{clusterv1.ClusterNameLabel: seen.cluster.Name},
			Annotations:     annotations,
			OwnerReferences: []metav1.OwnerReference{controllerReference(seen.config)},
		},
		Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{dataKey: config.Bytes},
	}, nil
}

// controllerReference does not block the owner's deletion: that would need a right on the owner's finalizers, and nothing
// waits for the Secret to be gone.
func controllerReference(config *bootstrapv1.TalosConfig) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: bootstrapv1.GroupVersion.String(),
		Kind:       machineconfig.KindTalosConfig,
		Name:       config.Name,
		UID:        config.UID,
		Controller: new(true),
	}
}
