// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/clustersecrets"
	"github.com/maesh-dev/ichor/internal/prose"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// notCreated reports that the API server has not taken the data Secret. A refusal, such as that of a quota, an admission policy or a webhook,
// is shown to the user, who may be able to lift it; nothing that is watched tells of that, so it is tried again. Everything else goes away by
// itself; see notYet.
func (r *Reconciler) notCreated(ctx context.Context, secret *corev1.Secret, err error) (outcome, error) {
	err = clustersecrets.CreateFault(ctx, r.Client, secret, err)
	fault := fmt.Errorf("secret %s: create: %w", secret.Name, err)

	done := outcome{
		bundle:   good(bootstrapv1.SecretsBundleAvailableReason, ""),
		rendered: good(bootstrapv1.TalosConfigConfigRenderedReason, ""),
	}

	if secrets.IsRefusal(err) {
		done.dataSecret = bad(bootstrapv1.TalosConfigDataSecretNotAvailableReason,
			prose.Shorten(fmt.Sprintf("The API server refuses Secret %s: %s", secret.Name, err)))
	}

	return done, fault
}

// notYet reports, of a data Secret that was to be made, that it is not there, when nothing else says why: what the TalosConfig has waited for
// has come, and must not be said to be missing for as long as something else fails. What failed is in the log alone: it may be something else
// each time, and a status that followed would be one more write each time. What another manager has changed is looked at again at once.
func notYet(config *bootstrapv1.TalosConfig, done outcome, err error) outcome {
	if err == nil || apierrors.IsConflict(err) || done.dataSecret != (verdict{}) {
		return done
	}

	done.dataSecret = bad(bootstrapv1.TalosConfigDataSecretNotAvailableReason, fmt.Sprintf(
		"Secret %s is not made yet: the last try failed, and the manager's log says of what; it is tried again", config.Name))

	return done
}
