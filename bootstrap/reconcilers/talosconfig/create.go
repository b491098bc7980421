// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

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
