// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// explain adds to an outcome why a machine waits when a step has failed for something that is no fault of an input, and nothing else says so.
// What failed is in the log, but for a right that the manager lacks: it may be something else each time, and a status that followed would be one
// more write each time. What another manager has changed is looked at again at once.
func (r *Reconciler) explain(seen observation, next step, done outcome, fault error) outcome {
	if _, rendering := next.(render); rendering {
		done = notYet(seen.config, done, fault)
	}

	if fault == nil || done != (outcome{}) {
		r.failing.Passed(seen.config.UID)

		return done
	}

	said := r.failing.Say(seen.config.UID, fault)
	if said == "" {
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

// notYet reports, of a data Secret that was to be made, that it is not there, when nothing else says why: what the TalosConfig has waited for
// has come, and must not be said to be missing for as long as something else fails.
func notYet(config *bootstrapv1.TalosConfig, done outcome, fault error) outcome {
	if fault == nil || apierrors.IsConflict(fault) || done.dataSecret != (verdict{}) {
		return done
	}

	done.dataSecret = bad(bootstrapv1.TalosConfigDataSecretNotAvailableReason, fmt.Sprintf("Secret %s is not made yet: %s; it is tried again",
		config.Name, cmp.Or(secrets.Denied(fault), "the last try failed, and the manager's log says of what")))

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
