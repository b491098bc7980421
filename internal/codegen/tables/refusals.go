// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"slices"

	"github.com/maesh-dev/ichor/internal/codegen/model"
)

// refusals are the fields that no patch may set. Each message begins with the field as users write it, and tells what to use.
func refusals() []model.Refusal {
	return slices.Concat(clusterSecrets(), identityFields(), upstreamRefusals())
}

// clusterSecrets are owned by the secrets bundle: setting one takes the cluster over or cuts the machine off.
func clusterSecrets() []model.Refusal {
	const (
		secret = ": cluster secret; it comes from the secrets bundle"
		trust  = ": trust root; use TalosClusterConfig.spec.acceptedCAsSecretRef"
		static = "static: a passphrase must not stand in a document; use nodeID, kms or tpm"
	)

	owned := []model.Refusal{
		{Go: legacy + "MachineConfig.MachineToken", Message: "machine.token" + secret},
		{Go: legacy + "MachineConfig.MachineCA", Message: "machine.ca" + secret},
		{Go: legacy + "MachineConfig.MachineAcceptedCAs", Message: "machine.acceptedCAs" + trust},
		{Go: legacy + "ClusterConfig.ClusterSecret", Message: "cluster.secret" + secret},
		{Go: legacy + "ClusterConfig.BootstrapToken", Message: "cluster.token" + secret},
		{Go: legacy + "ClusterConfig.ClusterAESCBCEncryptionSecret", Message: "cluster.aescbcEncryptionSecret" + secret},
		{Go: legacy + "ClusterConfig.ClusterSecretboxEncryptionSecret", Message: "cluster.secretboxEncryptionSecret" + secret},
		{Go: legacy + "ClusterConfig.ClusterCA", Message: "cluster.ca" + secret},
		{Go: legacy + "ClusterConfig.ClusterAcceptedCAs", Message: "cluster.acceptedCAs" + trust},
		{Go: legacy + "ClusterConfig.ClusterAggregatorCA", Message: "cluster.aggregatorCA" + secret},
		{Go: legacy + "ClusterConfig.ClusterServiceAccount", Message: "cluster.serviceAccount" + secret},
		{Go: legacy + "EtcdConfig.RootCA", Message: "cluster.etcd.ca" + secret},
		{Go: legacy + "ClusterConfig.ClusterID", Message: "cluster.id: identity of the cluster; it comes from the secrets bundle"},
	}

	for i := range owned {
		owned[i].Owner = model.Bundle
	}

	// No config has one but by a patch, so that there is nothing to compare it with.
	return append(owned,
		model.Refusal{Go: legacy + "EncryptionKey.KeyStatic", Message: static},
		model.Refusal{Go: "config/types/block.EncryptionKey.KeyStatic", Message: static},
	)
}

// identityFields say which cluster and what part of it a machine is.
func identityFields() []model.Refusal {
	const cluster = ": follows from the Cluster object"

	return []model.Refusal{
		{Go: legacy + "MachineConfig.MachineType", Owner: model.Cluster, Message: "machine.type: follows from the Machine's role"},
		{Go: legacy + "ClusterConfig.ClusterName", Owner: model.Cluster, Message: "cluster.clusterName" + cluster},
		{Go: legacy + "ControlPlaneConfig.Endpoint", Owner: model.Cluster, Message: "cluster.controlPlane.endpoint" + cluster},
	}
}
