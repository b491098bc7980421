// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// ReferencedSecrets are the names of all Secrets that a TalosClusterConfig refers to: those that a config is rendered with, and
// the one that the cluster's bundle is copied from.
func ReferencedSecrets(config *bootstrapv1.TalosClusterConfig) []string {
	names := machineconfig.SecretNames(config)

	if config.Spec.SecretsRef != nil {
		names = append(names, config.Spec.SecretsRef.Name)
	}

	return names
}
