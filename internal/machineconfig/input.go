// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	machinerysecrets "github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/version"
)

// Input is everything that a config is rendered from. It is one required argument, so that a caller that forgets to
// resolve something does not compile. Render changes nothing in it, so parts of it may be shared between renders.
type Input struct {
	// Cluster that the machine belongs to. Its control-plane endpoint must be set.
	Cluster *clusterv1.Cluster

	// Machine is what is known of the Machine or MachinePool.
	Machine Machine

	// Bundle is the cluster's secrets. It is never printed.
	Bundle *machinerysecrets.Bundle

	// Contract is the config format to render; see SelectContract.
	Contract version.Contract

	// TalosConfig of the machine.
	TalosConfig *bootstrapv1.TalosConfig

	// ClusterConfig that targets the Cluster, or nil; see SelectClusterConfig.
	ClusterConfig *bootstrapv1.TalosClusterConfig

	// Storages are the TalosStorages of the namespace; the one that governs the machine is selected.
	Storages []bootstrapv1.TalosStorage

	// Patches are the TalosConfigPatches of the namespace; those that target the machine are selected.
	Patches []*Patch

	// Credentials are what the Secrets hold that ClusterConfig refers to; see ResolveCredentials.
	Credentials Credentials

	// References are what the Secrets and ConfigMaps hold that the patches of the machine refer to; see ReferencedObjects.
	References References

	// Provenance asks for the record of what set each value. It costs time.
	Provenance bool
}

// Machine is what a render needs to know of a CAPI Machine or MachinePool.
type Machine struct {
	// Name of the Machine or MachinePool.
	Name string

	// Kind is Machine or MachinePool.
	Kind string

	// Labels of the Machine, or of the machine template of the MachinePool.
	Labels map[string]string

	// KubernetesVersion is spec.version, for example "v1.36.1".
	KubernetesVersion string

	// InfrastructureName is the name of the infrastructure machine object.
	InfrastructureName string

	// Taints are spec.taints: those for the initialization of a worker's Node are registered with it.
	Taints []clusterv1.MachineTaint

	// ControlPlane says whether the machine carries the control-plane label.
	ControlPlane bool
}

// NewMachine takes what a render needs from a Machine.
func NewMachine(machine *clusterv1.Machine) Machine {
	_, controlPlane := machine.Labels[clusterv1.MachineControlPlaneLabel]

	return Machine{
		Name:               machine.Name,
		Kind:               KindMachine,
		Labels:             machine.Labels,
		KubernetesVersion:  machine.Spec.Version,
		InfrastructureName: machine.Spec.InfrastructureRef.Name,
		Taints:             machine.Spec.Taints,
		ControlPlane:       controlPlane,
	}
}

// NewMachinePool takes what a render needs from a MachinePool: one config serves every instance, now and later.
func NewMachinePool(pool *clusterv1.MachinePool) Machine {
	template := pool.Spec.Template

	return Machine{
		Name:               pool.Name,
		Kind:               KindMachinePool,
		Labels:             template.Labels,
		KubernetesVersion:  template.Spec.Version,
		InfrastructureName: template.Spec.InfrastructureRef.Name,
		Taints:             template.Spec.Taints,
	}
}

// Role of the machine in its cluster.
func (m Machine) Role() bootstrapv1.MachineRole {
	if m.ControlPlane {
		return bootstrapv1.MachineRoleControlPlane
	}

	return bootstrapv1.MachineRoleWorker
}
