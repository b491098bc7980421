// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/launch"
)

// slimmer makes small what there is one of for each machine: see launch.Slimmer.
type slimmer struct{ launch.Slimmer }

// machine leaves of a Machine's status whether it has joined, and of its annotations what its node runs, which is all that is asked of
// them. A status has conditions that make up most of a Machine, and Cluster API writes it often. Nothing of a Machine is ever written, so
// nothing is lost.
func (s slimmer) machine(in any) (any, error) {
	machine, ok := in.(*clusterv1.Machine)
	if !ok {
		return in, nil
	}

	s.Meta(&machine.ObjectMeta)
	machine.Annotations = s.Only(machine.Annotations, bootstrapv1.RunningInputsAnnotation)
	machine.Finalizers = nil

	// Those of a MachineSet are owned by it.
	for i := range machine.OwnerReferences {
		owner := &machine.OwnerReferences[i]
		owner.Name, owner.UID = s.Text(owner.Name), types.UID(s.Text(string(owner.UID)))
	}

	spec := &machine.Spec
	spec.ClusterName = s.Text(spec.ClusterName)
	spec.Version = s.Text(spec.Version)
	spec.FailureDomain = s.Text(spec.FailureDomain)
	s.reference(&spec.Bootstrap.ConfigRef, machine.Name)
	s.reference(&spec.InfrastructureRef, machine.Name)

	if name := spec.Bootstrap.DataSecretName; name != nil && *name == machine.Name {
		*name = machine.Name
	}

	machine.Status = clusterv1.MachineStatus{NodeRef: machine.Status.NodeRef}
	machine.Status.NodeRef.Name = launch.Same(machine.Status.NodeRef.Name, machine.Name)

	return machine, nil
}

// talosConfig leaves everything but the bookkeeping of who has written what: a TalosConfig's status is compared with what is to be written.
func (s slimmer) talosConfig(in any) (any, error) {
	config, ok := in.(*bootstrapv1.TalosConfig)
	if !ok {
		return in, nil
	}

	s.Meta(&config.ObjectMeta)
	config.Annotations = s.Map(config.Annotations)
	config.Spec.Hostname.Source = bootstrapv1.HostnameSource(s.Text(string(config.Spec.Hostname.Source)))

	status := &config.Status
	status.ConfigContract = s.Text(status.ConfigContract)
	status.DataSecretName = launch.Same(status.DataSecretName, config.Name)

	status.Inputs = slices.Clone(status.Inputs)
	for i := range status.Inputs {
		input := &status.Inputs[i]
		input.Kind, input.Layer = s.Text(input.Kind), s.Text(input.Layer)

		if input.Name == config.Name {
			input.Name = config.Name
		} else {
			input.Name = s.Text(input.Name)
		}
	}

	status.Conditions = slices.Clone(status.Conditions)
	for i := range status.Conditions {
		condition := &status.Conditions[i]
		condition.Type, condition.Reason = s.Text(condition.Type), s.Text(condition.Reason)
		condition.Status = metav1.ConditionStatus(s.Text(string(condition.Status)))
	}

	return config, nil
}

func (s slimmer) reference(ref *clusterv1.ContractVersionedObjectReference, name string) {
	ref.Kind, ref.APIGroup = s.Text(ref.Kind), s.Text(ref.APIGroup)
	ref.Name = launch.Same(ref.Name, name)
}
