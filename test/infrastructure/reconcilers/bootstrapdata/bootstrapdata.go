// SPDX-License-Identifier: Apache-2.0

// Package bootstrapdata reads what machines boot from. It is not pure.
package bootstrapdata

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
)

// key is where bootstrap data is in its Secret.
const key = "value"

// Missing is why there is nothing to boot from: a reason of Ready, and a message.
type Missing struct {
	Reason, Message string
}

// Read reads the Secret that Cluster API names in the bootstrap of a Machine or a MachinePool. When it is not there yet, or of no use,
// Missing says why; an error comes with it if nothing that changes leads back here.
func Read(ctx context.Context, secrets client.Reader, cluster *clusterv1.Cluster, namespace string, bootstrap clusterv1.Bootstrap) ([]byte, Missing, error) {
	if !ptr.Deref(cluster.Status.Initialization.InfrastructureProvisioned, false) {
		return nil, Missing{Reason: infrav1.WaitingForClusterInfrastructureReason}, nil
	}

	name := bootstrap.DataSecretName
	if name == nil {
		return nil, Missing{Reason: infrav1.WaitingForBootstrapDataReason}, nil
	}

	secret := &corev1.Secret{}
	if err := secrets.Get(ctx, client.ObjectKey{Namespace: namespace, Name: *name}, secret); err != nil {
		return nil, Missing{infrav1.BootstrapDataUnusableReason, fmt.Sprintf("Secret %s cannot be read", *name)}, fmt.Errorf("bootstrap data: %w", err)
	}

	if len(secret.Data[key]) == 0 {
		message := fmt.Sprintf("Secret %s has nothing under the key %q", *name, key)

		return nil, Missing{infrav1.BootstrapDataUnusableReason, message}, fmt.Errorf("bootstrap data: %s", message)
	}

	return secret.Data[key], Missing{}, nil
}
