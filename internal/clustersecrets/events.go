// SPDX-License-Identifier: Apache-2.0

package clustersecrets

import (
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/maesh-dev/ichor/internal/prose"
)

// Reasons of events about a Cluster's secrets.
const (
	// EventSecretsBundleCreated is the reason when the bundle was made, or copied from a user's.
	EventSecretsBundleCreated = "SecretsBundleCreated"

	// EventTalosconfigRenewed is the reason when the talosconfig got a new client certificate.
	EventTalosconfigRenewed = "TalosconfigRenewed"

	// EventSecretsFault is the reason when a user must mend something about a cluster's secrets.
	EventSecretsFault = "ClusterSecretsFault"
)

// Actions of events.
const (
	actionMake  = "CreateSecretsBundle"
	actionRenew = "RenewTalosconfig"
	actionKeep  = "KeepSecrets"
)

func (k *Keeper) recordMade(cluster *clusterv1.Cluster, secret *corev1.Secret, origin string) {
	if k.Made != nil {
		k.Made()
	}

	k.recorder.Eventf(cluster, secret, corev1.EventTypeNormal, EventSecretsBundleCreated, actionMake,
		"Created Secret %s with the cluster's Talos secrets: %s", secret.Name, origin)
}

func (k *Keeper) recordRenewed(cluster *clusterv1.Cluster, secret *corev1.Secret, reason string) {
	k.recorder.Eventf(cluster, secret, corev1.EventTypeNormal, EventTalosconfigRenewed, actionRenew,
		"Made a new client certificate in Secret %s: %s", secret.Name, reason)
}

// RecordFault writes an event about what a user must mend.
func (k *Keeper) RecordFault(cluster *clusterv1.Cluster, fault *FaultError) {
	// An event has a note of at most 1024 bytes.
	k.recorder.Eventf(cluster, nil, corev1.EventTypeWarning, EventSecretsFault, actionKeep, "%s", prose.Shorten(fault.Error()))
}
