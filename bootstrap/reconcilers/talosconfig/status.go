// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/clustersecrets"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/prose"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// summarized are the conditions that make up Ready. The bundle's is left out until the bundle has been looked at.
var summarized = []string{
	bootstrapv1.TalosConfigDataSecretAvailableCondition,
	bootstrapv1.SecretsBundleAvailableCondition,
	bootstrapv1.TalosConfigConfigRenderedCondition,
}

// verdict is a condition without its type and time. The zero value leaves the condition as it is.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

func good(reason, message string) verdict { return verdict{metav1.ConditionTrue, reason, message} }

func bad(reason, message string) verdict { return verdict{metav1.ConditionFalse, reason, message} }

// see is the message of a condition that is false because another is.
func see(conditionType string) string { return "See the condition " + conditionType }

// follows says whether a condition is false because another is.
func follows(config *bootstrapv1.TalosConfig, condition *metav1.Condition) bool {
	waits := condition.Reason == bootstrapv1.TalosConfigWaitingForInputsReason
	if condition.Type != bootstrapv1.TalosConfigDataSecretAvailableCondition {
		return waits
	}

	rendered := conditions.Get(config, bootstrapv1.TalosConfigConfigRenderedCondition)
	unrendered := rendered != nil && rendered.Status == metav1.ConditionFalse && !follows(config, rendered)

	return condition.Reason == bootstrapv1.TalosConfigDataSecretNotAvailableReason &&
		(unrendered || conditions.IsFalse(config, bootstrapv1.SecretsBundleAvailableCondition))
}

// outcome is what a step has found and done.
type outcome struct {
	dataSecret, bundle, rendered verdict

	// dataSecretName is empty when the step says nothing about it; what the status says then stays.
	dataSecretName string

	// described is what the data Secret holds. Nil leaves the status as it is.
	described *description
}

// fault is the reason of the condition that says why there is no config; empty when none does.
func (o outcome) fault() string {
	for _, v := range []verdict{o.bundle, o.rendered, o.dataSecret} {
		if v.status == metav1.ConditionFalse && v.reason != bootstrapv1.TalosConfigWaitingForInputsReason {
			return v.reason
		}
	}

	return ""
}

func waiting(next wait) outcome {
	return outcome{
		dataSecret: bad(next.reason, next.message),
		rendered:   bad(bootstrapv1.TalosConfigWaitingForInputsReason, see(bootstrapv1.TalosConfigDataSecretAvailableCondition)),
	}
}

func available(secret *corev1.Secret) outcome {
	described := descriptionOf(secret)

	return outcome{
		dataSecretName: secret.Name,
		described:      &described,
		dataSecret:     good(bootstrapv1.TalosConfigDataSecretAvailableReason, ""),
		bundle:         good(bootstrapv1.SecretsBundleAvailableReason, ""),
		rendered:       good(bootstrapv1.TalosConfigConfigRenderedReason, ""),
	}
}

func damaged(name string) outcome {
	return outcome{
		dataSecret: bad(bootstrapv1.TalosConfigDataSecretNotAvailableReason,
			fmt.Sprintf("Secret %s has no value for the key %q: delete the Secret, and it is made again", name, dataKey)),
	}
}

func adopted(name, kind string) outcome {
	return outcome{
		dataSecretName: name,
		dataSecret:     good(bootstrapv1.TalosConfigDataSecretAvailableReason, ""),
		rendered: good(bootstrapv1.TalosConfigAdoptedReason,
			fmt.Sprintf("The %s has bootstrap data in Secret %s already", kind, name)),
	}
}

func forgone(name, message string) outcome {
	return outcome{
		dataSecretName: name,
		dataSecret:     good(bootstrapv1.TalosConfigDataSecretNotNeededReason, message),
		rendered:       good(bootstrapv1.TalosConfigConfigRenderedReason, ""),
	}
}

func refused(next refuse) outcome {
	return outcome{dataSecret: bad(next.reason, next.message)}
}

// failed sorts the error of a render: faults of the bundle and of the inputs go into their conditions and are terminal;
// everything else, such as an API server that does not answer, is returned to be tried again, and tells nothing of inputs and bundle.
func failed(in renderInputs, err error) (outcome, error) {
	done := outcome{dataSecret: bad(bootstrapv1.TalosConfigDataSecretNotAvailableReason, see(bootstrapv1.TalosConfigConfigRenderedCondition))}

	if in.bundle != nil {
		done.bundle = good(bootstrapv1.SecretsBundleAvailableReason, "")
	}

	if fault, ok := errors.AsType[*clustersecrets.FaultError](err); ok {
		done.bundle = bad(fault.Reason, prose.Shorten(fault.Error()))
		done.dataSecret.message = see(bootstrapv1.SecretsBundleAvailableCondition)
		done.rendered = bad(bootstrapv1.TalosConfigWaitingForInputsReason, see(bootstrapv1.SecretsBundleAvailableCondition))

		if fault.Again {
			return done, err
		}

		return done, reconcile.TerminalError(err)
	}

	if reason := machineconfig.ReasonOf(err); reason != "" {
		done.rendered = bad(string(reason), faultMessage(machineconfig.Errors(err)))

		return done, reconcile.TerminalError(err)
	}

	return outcome{}, err
}

// report writes the status, if it changed, in one patch.
func (r *Reconciler) report(ctx context.Context, before, config *bootstrapv1.TalosConfig, done outcome, fault error) error {
	// Nothing was found out: the status of the last time is still the best that can be said.
	if done == (outcome{}) {
		return nil
	}

	status := &config.Status
	status.ObservedGeneration = config.Generation

	if done.dataSecretName != "" {
		status.DataSecretName = done.dataSecretName
		status.Initialization.DataSecretCreated = new(true)
	}

	if done.described != nil {
		// The contract is pinned once: a broken annotation does not unpin it.
		if done.described.contract != "" {
			status.ConfigContract = done.described.contract
		}

		status.RenderedHash = done.described.hash
		status.Inputs = done.described.inputs
	}

	setCondition(config, bootstrapv1.TalosConfigDataSecretAvailableCondition, done.dataSecret)
	setCondition(config, bootstrapv1.SecretsBundleAvailableCondition, done.bundle)
	setCondition(config, bootstrapv1.TalosConfigConfigRenderedCondition, done.rendered)

	if err := summarize(config); err != nil {
		return fmt.Errorf("condition %s: %w", bootstrapv1.TalosConfigReadyCondition, err)
	}

	if equality.Semantic.DeepEqual(before.Status, config.Status) {
		return nil
	}

	if fault != nil {
		r.recordFault(before, config)
	}

	return r.patchStatus(ctx, before, config)
}

// patchStatus sends conditions and fields at once. Cluster API's patch helper would send them in two requests, to merge
// conditions of several writers; a TalosConfig's status has this one, and the lock notices any other.
func (r *Reconciler) patchStatus(ctx context.Context, before, config *bootstrapv1.TalosConfig) error {
	err := r.Client.Status().Patch(ctx, config, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))

	switch {
	case err == nil:
		r.told.Remove(unwritten(config))
		r.deferrer.DeferNextReconcileUntilCacheUpToDate(config, configKind, config.ResourceVersion)

		return nil
	case apierrors.IsConflict(err):
		// The cache was behind. The newer TalosConfig is on its way into it, and wakes this one.
		ctrl.LoggerFrom(ctx).V(4).Info("The TalosConfig has changed, its status is written when the cache has it")

		return nil
	case apierrors.IsNotFound(err):
		return nil
	case secrets.IsRefusal(err):
		r.recordUnwritten(config, err)
	}

	return fmt.Errorf("patch the status: %w", err)
}

func setCondition(config *bootstrapv1.TalosConfig, conditionType string, v verdict) {
	if v == (verdict{}) {
		return
	}

	conditions.Set(config, metav1.Condition{Type: conditionType, Status: v.status, Reason: v.reason, Message: v.message})
}

func summarize(config *bootstrapv1.TalosConfig) error {
	return conditions.SetSummaryCondition(config, config, bootstrapv1.TalosConfigReadyCondition,
		conditions.ForConditionTypes(telling(config)),
		conditions.IgnoreTypesIfMissing{bootstrapv1.SecretsBundleAvailableCondition},
		conditions.CustomMergeStrategy{MergeStrategy: conditions.DefaultMergeStrategy(
			conditions.ComputeReasonFunc(conditions.GetDefaultComputeMergeReasonFunc(
				bootstrapv1.TalosConfigNotReadyReason,
				bootstrapv1.TalosConfigReadyUnknownReason,
				bootstrapv1.TalosConfigReadyReason,
			)),
		)})
}

// telling returns the conditions that say why the TalosConfig is not ready, all of them when none does. One that is false
// because of another is left out: it would add a line to Ready, and nothing to know.
func telling(config *bootstrapv1.TalosConfig) []string {
	counting := summarized

	// A Machine that has its data needs the cluster's secrets no more: that they are lost must not make a cluster of machines that run one of
	// machines that are not ready, which are replaced. A MachinePool needs them for its next instances.
	if conditions.IsTrue(config, bootstrapv1.TalosConfigDataSecretAvailableCondition) && !isPools(config) {
		counting = []string{bootstrapv1.TalosConfigDataSecretAvailableCondition, bootstrapv1.TalosConfigConfigRenderedCondition}
	}

	var faults []string

	for _, conditionType := range counting {
		if condition := conditions.Get(config, conditionType); condition != nil && condition.Status == metav1.ConditionFalse && !follows(config, condition) {
			faults = append(faults, conditionType)
		}
	}

	if len(faults) > 0 {
		return faults
	}

	return counting
}

// maxFaults is how many faults a message names.
const maxFaults = 5

// faultMessage is the faults, sorted and capped: the same faults give the same message.
func faultMessage(faults []*machineconfig.Error) string {
	messages := make([]string, len(faults))
	for i, fault := range faults {
		messages[i] = prose.Shorten(fault.Error())
	}

	slices.Sort(messages)
	messages = slices.Compact(messages)

	if rest := len(messages) - maxFaults; rest > 0 {
		return fmt.Sprintf("%s; and %d more", strings.Join(messages[:maxFaults], "; "), rest)
	}

	return strings.Join(messages, "; ")
}
