// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"

	apimachineryvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/rollout"
	"github.com/maesh-dev/ichor/internal/version"
)

// templateSuffix is what the kinds of templates end in. A machine has the kind of its template without it.
const templateSuffix = "Template"

// TalosControlPlane looks at a TalosControlPlane.
func TalosControlPlane(object *controlplanev1.TalosControlPlane) Report {
	report := &Report{}
	path := field.NewPath("spec")
	spec := &object.Spec

	report.kubernetes(path.Child("version"), spec.Version, spec.TalosConfigSpec.ConfigContract)
	report.addErrors(spec.MachineTemplate.ObjectMeta.Validate(path.Child("machineTemplate", "metadata")))

	machine := path.Child("machineTemplate", "spec")
	report.infrastructureTemplate(machine.Child("infrastructureRef"), spec.MachineTemplate.Spec.InfrastructureRef)
	report.taints(machine.Child("taints"), spec.MachineTemplate.Spec.Taints)

	report.configSpec(path.Child("talosConfigSpec"), &spec.TalosConfigSpec)
	report.machineNaming(path.Child("machineNaming", "template"), spec.MachineNaming.Template)
	report.nodeOperations(path.Child("nodeOperations"), &spec.NodeOperations)

	return report.done()
}

// TalosControlPlaneTemplate looks at a TalosControlPlaneTemplate.
func TalosControlPlaneTemplate(object *controlplanev1.TalosControlPlaneTemplate) Report {
	report := &Report{}
	template := field.NewPath("spec", "template")
	path := template.Child("spec")
	spec := &object.Spec.Template.Spec

	report.addErrors(object.Spec.Template.ObjectMeta.Validate(template.Child("metadata")))
	report.addErrors(spec.MachineTemplate.ObjectMeta.Validate(path.Child("machineTemplate", "metadata")))
	report.taints(path.Child("machineTemplate", "spec", "taints"), spec.MachineTemplate.Spec.Taints)
	report.configSpec(path.Child("talosConfigSpec"), &spec.TalosConfigSpec)
	report.machineNaming(path.Child("machineNaming", "template"), spec.MachineNaming.Template)
	report.nodeOperations(path.Child("nodeOperations"), &spec.NodeOperations)

	return report.done()
}

// kubernetes refuses a version that no Talos runs which the machines may have. Which one they have is said elsewhere, and a format is
// read by every newer Talos too; so only what none of those runs is certain to be wrong.
func (r *Report) kubernetes(path *field.Path, text, format string) {
	kubernetes, err := version.ParseKubernetes(text)
	if err != nil {
		r.fail(path, err.Error())

		return
	}

	// What is wrong with the format is told at its own field; the zero value is older than all.
	contract, _ := version.ParseContract(format)

	if err := version.CheckKubernetesOfAny(contract, kubernetes); err != nil {
		r.fail(path, err.Error())
	}
}

// infrastructureTemplate refuses a reference that can lead to no template of machines.
func (r *Report) infrastructureTemplate(path *field.Path, ref clusterv1.ContractVersionedObjectReference) {
	kind := strings.TrimSuffix(ref.Kind, templateSuffix)
	if kind == ref.Kind || kind == "" {
		r.fail(path.Child("kind"), fmt.Sprintf("must be the kind of a template of machines, which ends in %s, such as Metal3Machine%[1]s: "+
			"each machine gets an object of its own that is made from it", templateSuffix))
	}

	if group, _, _ := strings.Cut(ref.APIGroup, "."); group == "bootstrap" || group == "controlplane" || ref.APIGroup == clusterv1.GroupVersion.Group {
		r.fail(path.Child("apiGroup"), "must be the group of an infrastructure provider, such as infrastructure.cluster.x-k8s.io: "+
			"what configures machines goes to talosConfigSpec")
	}
}

// machineNaming refuses a template by which no Machine could be named.
func (r *Report) machineNaming(path *field.Path, text string) {
	if text == "" {
		return
	}

	if err := rollout.CheckNaming(text); err != nil {
		r.fail(path, err.Error())
	}
}

// Taints that Cluster API or Kubernetes sets and removes by itself.
const (
	outOfServiceTaint   = "node.kubernetes.io/out-of-service"
	kubernetesTaints    = "node.kubernetes.io/"
	cloudProviderTaints = "node.cloudprovider.kubernetes.io/"
	masterTaint         = "node-role.kubernetes.io/master"
)

// taints refuses what Cluster API would refuse of every Machine that is made.
func (r *Report) taints(path *field.Path, taints []clusterv1.MachineTaint) {
	if len(taints) > 0 {
		r.warn(path, "Cluster API takes taints of Machines only with its feature gate MachineTaintPropagation; without it no Machine can be made: "+
			"taint Nodes by a TalosConfigPatch then")
	}

	for i, taint := range taints {
		key := path.Index(i).Child("key")

		if faults := apimachineryvalidation.IsQualifiedName(taint.Key); len(faults) > 0 {
			r.fail(key, strings.Join(faults, "; "))
		}

		switch {
		case taint.Key == clusterv1.NodeUninitializedTaint.Key, taint.Key == clusterv1.NodeOutdatedRevisionTaint.Key:
			r.fail(key, "belongs to Cluster API, which sets and removes it: remove it here")
		case strings.HasPrefix(taint.Key, kubernetesTaints) && taint.Key != outOfServiceTaint, strings.HasPrefix(taint.Key, cloudProviderTaints):
			r.fail(key, "belongs to Kubernetes, which sets and removes it by what it knows of the Node: use a key of your own")
		case taint.Key == masterTaint:
			r.fail(key, "is no longer used by Kubernetes, and Cluster API refuses it: use node-role.kubernetes.io/control-plane")
		}
	}
}
