// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/labels/format"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/rollout"
)

const (
	talosConfigKind       = "TalosConfig"
	talosControlPlaneKind = "TalosControlPlane"
	machineKind           = "Machine"
	clusterKind           = clusterv1.ClusterKind
)

// carried are the annotations on a Machine that are ours and stay as they are when the rest is applied.
var carried = []string{controlplanev1.PreTerminateHookAnnotation, controlplanev1.RemediationForAnnotation}

// labelsFor are the labels of a control plane's Machines, TalosConfigs and infrastructure machines.
func labelsFor(tcp *controlplanev1.TalosControlPlane, cluster string) map[string]string {
	out := maps.Clone(tcp.Spec.MachineTemplate.ObjectMeta.Labels)
	if out == nil {
		out = map[string]string{}
	}

	out[clusterv1.ClusterNameLabel] = cluster
	out[clusterv1.MachineControlPlaneLabel] = ""
	// It may be a hash: a name of more than 63 characters is no label.
	out[clusterv1.MachineControlPlaneNameLabel] = format.MustFormatValue(tcp.Name)

	return out
}

func annotationsFor(tcp *controlplanev1.TalosControlPlane) map[string]string {
	out := maps.Clone(tcp.Spec.MachineTemplate.ObjectMeta.Annotations)
	if out == nil {
		out = map[string]string{}
	}

	return out
}

// newMachine is a Machine to be made, without what it refers to.
func newMachine(tcp *controlplanev1.TalosControlPlane, cluster, name string, action rollout.CreateMachine) *clusterv1.Machine {
	machine := machineFor(tcp, cluster, &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: tcp.Namespace}})
	machine.Spec.Version = tcp.Spec.Version
	machine.Spec.FailureDomain = action.FailureDomain
	machine.Annotations[controlplanev1.PreTerminateHookAnnotation] = ""

	if action.Remediation != nil {
		machine.Annotations[controlplanev1.RemediationForAnnotation] = action.Remediation.Marshal()
	}

	return machine
}

// machineFor is a Machine as it should be: what reaches it without a rollout is the control plane's, everything else its own.
func machineFor(tcp *controlplanev1.TalosControlPlane, cluster string, existing *clusterv1.Machine) *clusterv1.Machine {
	template := &tcp.Spec.MachineTemplate.Spec

	out := &clusterv1.Machine{
		TypeMeta: metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: machineKind},
		ObjectMeta: metav1.ObjectMeta{
			Name: existing.Name, Namespace: existing.Namespace, UID: existing.UID,
			Labels: labelsFor(tcp, cluster), Annotations: annotationsFor(tcp),
			// From birth, so that Cluster API does not take it for one without an owner.
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(tcp, controlplanev1.GroupVersion.WithKind(talosControlPlaneKind))},
		},
		Spec: clusterv1.MachineSpec{
			ClusterName: cluster, Version: existing.Spec.Version, FailureDomain: existing.Spec.FailureDomain,
			Bootstrap:         clusterv1.Bootstrap{ConfigRef: existing.Spec.Bootstrap.ConfigRef},
			InfrastructureRef: existing.Spec.InfrastructureRef,
			Deletion:          deletionFor(template.Deletion),
			Taints:            template.Taints,
			ReadinessGates:    gatesFor(template.ReadinessGates),
		},
	}

	for _, name := range carried {
		if value, ok := existing.Annotations[name]; ok {
			out.Annotations[name] = value
		}
	}

	return out
}

func deletionFor(timeouts controlplanev1.MachineDeletionTimeouts) clusterv1.MachineDeletionSpec {
	return clusterv1.MachineDeletionSpec{
		NodeDrainTimeoutSeconds:        timeouts.NodeDrainTimeoutSeconds,
		NodeVolumeDetachTimeoutSeconds: timeouts.NodeVolumeDetachTimeoutSeconds,
		NodeDeletionTimeoutSeconds:     timeouts.NodeDeletionTimeoutSeconds,
	}
}

// gatesFor are ours and the user's, each once.
func gatesFor(own []clusterv1.MachineReadinessGate) []clusterv1.MachineReadinessGate {
	out := slices.Clone(readinessGates)

	for _, gate := range own {
		if !slices.ContainsFunc(out, func(other clusterv1.MachineReadinessGate) bool { return other.ConditionType == gate.ConditionType }) {
			out = append(out, gate)
		}
	}

	return out
}

// newConfig is a machine's TalosConfig to be made. Cluster API makes the Machine its owner later, in place of the control plane.
func newConfig(tcp *controlplanev1.TalosControlPlane, cluster, name string) *bootstrapv1.TalosConfig {
	return &bootstrapv1.TalosConfig{
		TypeMeta: metav1.TypeMeta{APIVersion: bootstrapv1.GroupVersion.String(), Kind: talosConfigKind},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: tcp.Namespace, Labels: labelsFor(tcp, cluster), Annotations: annotationsFor(tcp),
			OwnerReferences: []metav1.OwnerReference{referenceTo(tcp)},
		},
		Spec: *tcp.Spec.TalosConfigSpec.DeepCopy(),
	}
}

// referenceTo is a reference to the control plane as an owner that does not control.
func referenceTo(tcp *controlplanev1.TalosControlPlane) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: controlplanev1.GroupVersion.String(), Kind: talosControlPlaneKind, Name: tcp.Name, UID: tcp.UID,
	}
}
