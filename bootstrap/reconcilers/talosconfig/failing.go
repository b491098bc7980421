// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"cmp"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/reporting"
)

// explain adds to an outcome why a machine waits when a step has failed for something that is no fault of an input, and nothing else says so.
// What failed is in the log, but for a right that the manager lacks: it may be something else each time, and a status that followed would be one
// more write each time. What another manager has changed is looked at again at once.
func (r *Reconciler) explain(seen observation, next step, done outcome, fault error) outcome {
	_, rendering := next.(render)

	if untold := done == (outcome{}) || rendering && done.dataSecret == (verdict{}); fault == nil || !untold {
		r.failing.Passed(seen.config.UID)

		return done
	}

	said := r.failing.Say(seen.config.UID, fault)

	switch {
	case rendering:
		return notYet(seen.config, done, fault, said)
	case said == "":
		return done
	}

	if follows, ok := next.(refresh); ok {
		return behind(follows.secret, said)
	}

	// A machine that has its Secret waits for nothing.
	if !conditions.IsTrue(seen.config, bootstrapv1.TalosConfigDataSecretAvailableCondition) {
		done.dataSecret = bad(bootstrapv1.TalosConfigDataSecretNotAvailableReason, fmt.Sprintf(
			"It is not known yet how Secret %s is: %s; it is tried again", seen.config.Name, said))
	}

	return done
}

// isMomentary says whether a fault is that a cache is behind, and has not been so for long.
func (r *Reconciler) isMomentary(config *bootstrapv1.TalosConfig, fault error) bool {
	_, behind := errors.AsType[*behindError](fault)

	return behind && r.failing.Say(config.UID, fault) == ""
}

// notYet reports, of a data Secret that was to be made, that it is not there, when nothing else says why: what the TalosConfig has waited for
// has come, and must not be said to be missing for as long as something else fails. That is said from the first try on, so what lasts is said no other way.
func notYet(config *bootstrapv1.TalosConfig, done outcome, fault error, said string) outcome {
	if apierrors.IsConflict(fault) {
		return done
	}

	if said == reporting.Unanswered {
		said = ""
	}

	done.dataSecret = bad(bootstrapv1.TalosConfigDataSecretNotAvailableReason, fmt.Sprintf("Secret %s is not made yet: %s; it is tried again",
		config.Name, cmp.Or(said, "the last try failed, and the manager's log says of what")))

	return done
}

// behind reports that the Secret of a MachinePool may not follow its inputs, beside a Secret that can be used.
func behind(secret *corev1.Secret, said string) outcome {
	done := kept(secret)
	done.bundle = verdict{}
	done.rendered = bad(bootstrapv1.TalosConfigRenderFailedReason, fmt.Sprintf(
		"Secret %s may be behind its inputs, which the MachinePool's next instances boot with: %s; it is tried again", secret.Name, said))

	return done
}
