// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/metrics"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/prose"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// Reasons of events about a TalosConfig.
const (
	eventDataSecretRecreated = "DataSecretRecreated"
	eventDataSecretUpdated   = "DataSecretUpdated"
	eventDataSecretClaimed   = "DataSecretClaimed"
	eventStatusRefused       = "StatusRefused"
)

// Actions of events.
const (
	actionRender = "Render"
	actionClaim  = "Claim"
	actionReport = "Report"
)

// recordCreated tells of a Secret that was there before. That of a new machine is no event: there would be one for each, which says nothing
// that the TalosConfig does not, is a write, and is kept by Kubernetes' library for minutes to recognise a series.
func (r *Reconciler) recordCreated(config *bootstrapv1.TalosConfig, secret *corev1.Secret, rendered machineconfig.Config, again bool) {
	metrics.Rendered()

	if again {
		before := "before the machine had joined"
		if isPools(config) {
			before = "and the MachinePool's next instances boot of it"
		}

		metrics.DataSecretWritten(metrics.Recreated)
		r.Recorder.Eventf(config, secret, corev1.EventTypeWarning, eventDataSecretRecreated, actionRender,
			"Secret %s was deleted %s; rendered it again with contract %s", secret.Name, before, rendered.Contract)

		return
	}

	metrics.DataSecretWritten(metrics.Created)
}

// recordFailure counts a config that could not be rendered, or not be written.
func recordFailure(done outcome, fault error) {
	if fault != nil {
		metrics.RenderFailed(done.fault())
	}
}

func (r *Reconciler) recordUpdated(config *bootstrapv1.TalosConfig, secret *corev1.Secret, rendered machineconfig.Config) {
	metrics.Rendered()
	metrics.DataSecretWritten(metrics.Regenerated)
	r.Recorder.Eventf(config, secret, corev1.EventTypeNormal, eventDataSecretUpdated, actionRender,
		"Rendered the machine config into Secret %s again, since its inputs have changed; instances that the MachinePool gets from now on boot of it (contract %s)",
		secret.Name, rendered.Contract)
}

func (r *Reconciler) recordClaimed(config *bootstrapv1.TalosConfig, secret *corev1.Secret) {
	metrics.DataSecretWritten(metrics.Claimed)
	r.Recorder.Eventf(config, secret, corev1.EventTypeNormal, eventDataSecretClaimed, actionClaim,
		"Secret %s, from which the machine boots, belongs to the TalosConfig again", secret.Name)
}

// recordFault writes one event for each condition that turned bad or changed what it says; a fault that stays is told once.
func (r *Reconciler) recordFault(before, config *bootstrapv1.TalosConfig) {
	for _, conditionType := range summarized {
		now := conditions.Get(config, conditionType)
		if now == nil || now.Status != metav1.ConditionFalse || follows(config, now) {
			continue
		}

		if then := conditions.Get(before, conditionType); then != nil && then.Reason == now.Reason && then.Message == now.Message {
			continue
		}

		r.Recorder.Eventf(config, nil, corev1.EventTypeWarning, now.Reason, actionRender, "%s", prose.Shorten(now.Message))
	}
}

// unwritten is how it is remembered that a status cannot be written.
func unwritten(config *bootstrapv1.TalosConfig) string { return "status of " + string(config.UID) }

// recordUnwritten tells, once, that the API server refuses the status, which cannot say so itself. Cluster API waits for it.
func (r *Reconciler) recordUnwritten(config *bootstrapv1.TalosConfig, err error) {
	answer := secrets.AnswerOf(err)
	if last, ok := r.told.Get(unwritten(config)); ok && last == answer {
		return
	}

	r.told.Add(unwritten(config), answer)
	r.Recorder.Eventf(config, nil, corev1.EventTypeWarning, eventStatusRefused, actionReport,
		"The API server refuses that the manager writes the TalosConfig's status (%s), which Cluster API waits for: give its "+
			"ServiceAccount the rights back that it was installed with, or lift the policy that forbids it; it is tried again", answer)
}
