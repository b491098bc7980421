// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/labels/format"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/cli/manifest"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// Kinds of objects that make machines, beside those that the renderer knows.
const (
	KindMachineDeployment   = "MachineDeployment"
	KindMachineSet          = "MachineSet"
	KindTalosConfigTemplate = "TalosConfigTemplate"
	KindTalosControlPlane   = "TalosControlPlane"
)

// Subject is a machine that a config can be rendered for: a Machine, a MachinePool, or the machine that a TalosControlPlane,
// MachineDeployment or MachineSet would make.
type Subject struct {
	// Ref is the object that the machine is, or that makes it.
	Ref manifest.Ref

	// Machine is what a render needs to know. Of a machine that is still to be made, the name is "<owner>-template".
	Machine machineconfig.Machine

	// Cluster is the Cluster of the machine.
	Cluster *clusterv1.Cluster

	// TalosConfig of the machine, made from Template when that is set, and from the TalosControlPlane that Ref then is.
	TalosConfig *bootstrapv1.TalosConfig

	// Template is the name of the TalosConfigTemplate that TalosConfig was made from, else empty.
	Template string
}

// MissingError is an object that is referred to and is not among the files.
type MissingError struct {
	// From and Field are what refers to it.
	From  manifest.Ref
	Field string

	// Ref is what is referred to.
	Ref manifest.Ref
}

// Error says what is missing and what to do.
func (m *MissingError) Error() string {
	return fmt.Sprintf("%s is not among the files: add the file that has it, or correct the reference", m.Ref)
}

// origin is what a machine is made from: its own object, or a template.
type origin struct {
	ref         manifest.Ref
	clusterName string
	field       string
	bootstrap   clusterv1.Bootstrap
	machine     machineconfig.Machine

	// config is that of the machine where the object that makes it has it in itself.
	config *bootstrapv1.TalosConfigSpec
}

// Subjects lists the machines of the set, sorted by namespace, kind and name. Machines that are not Ichor's to configure are
// left out, and named in others. The error consists of MissingErrors, and then lacks a subject for each.
func Subjects(set *manifest.Set) (subjects []*Subject, others []manifest.Ref, err error) {
	var faults []error

	for _, each := range origins(set) {
		ref := each.bootstrap.ConfigRef
		if each.config == nil && ref.APIGroup != bootstrapv1.GroupVersion.Group {
			others = append(others, each.ref)

			continue
		}

		subject, missing := each.subject(set)
		if missing != nil {
			faults = append(faults, missing)

			continue
		}

		subjects = append(subjects, subject)
	}

	slices.SortFunc(subjects, func(a, b *Subject) int {
		return cmp.Or(cmp.Compare(a.Ref.Namespace, b.Ref.Namespace), cmp.Compare(a.Ref.Kind, b.Ref.Kind), cmp.Compare(a.Ref.Name, b.Ref.Name))
	})

	return subjects, others, errors.Join(faults...)
}

func origins(set *manifest.Set) []origin {
	var all []origin

	for _, machine := range set.Machines {
		withDefaults := machine.DeepCopy()
		complete(&withDefaults.ObjectMeta.Labels, &withDefaults.Spec, machine.Spec.ClusterName, nil)

		all = append(all, origin{
			ref:         manifest.Ref{Kind: machineconfig.KindMachine, Namespace: machine.Namespace, Name: machine.Name},
			clusterName: machine.Spec.ClusterName, field: "spec.bootstrap.configRef", bootstrap: machine.Spec.Bootstrap,
			machine: machineconfig.NewMachine(withDefaults),
		})
	}

	for _, pool := range set.MachinePools {
		withDefaults := pool.DeepCopy()
		template := &withDefaults.Spec.Template
		complete(&template.ObjectMeta.Labels, &template.Spec, pool.Spec.ClusterName, nil)

		all = append(all, origin{
			ref:         manifest.Ref{Kind: machineconfig.KindMachinePool, Namespace: pool.Namespace, Name: pool.Name},
			clusterName: pool.Spec.ClusterName, field: "spec.template.spec.bootstrap.configRef", bootstrap: template.Spec.Bootstrap,
			machine: machineconfig.NewMachinePool(withDefaults),
		})
	}

	for _, set := range set.MachineSets {
		all = append(all, templated(KindMachineSet, set.ObjectMeta, set.Spec.ClusterName, set.Spec.Template, clusterv1.MachineSetNameLabel))
	}

	for _, deployment := range set.MachineDeployments {
		all = append(all, templated(KindMachineDeployment, deployment.ObjectMeta, deployment.Spec.ClusterName, deployment.Spec.Template,
			clusterv1.MachineDeploymentNameLabel))
	}

	for _, controlPlane := range set.TalosControlPlanes {
		if cluster := ClusterOf(set, controlPlane); cluster != nil {
			all = append(all, ofControlPlane(controlPlane, cluster.Name))
		}
	}

	return all
}

// ClusterOf is the Cluster that has a TalosControlPlane as its own, or nil if none among the files has.
func ClusterOf(set *manifest.Set, controlPlane *controlplanev1.TalosControlPlane) *clusterv1.Cluster {
	for _, cluster := range set.Clusters {
		ref := cluster.Spec.ControlPlaneRef
		if cluster.Namespace == controlPlane.Namespace && ref.Name == controlPlane.Name && ref.Kind == KindTalosControlPlane &&
			ref.APIGroup == controlplanev1.GroupVersion.Group {
			return cluster
		}
	}

	return nil
}

// ofControlPlane is a machine that a TalosControlPlane would make.
func ofControlPlane(controlPlane *controlplanev1.TalosControlPlane, cluster string) origin {
	machine := &clusterv1.Machine{Spec: clusterv1.MachineSpec{Version: controlPlane.Spec.Version, Taints: controlPlane.Spec.MachineTemplate.Spec.Taints}}
	machine.Name, machine.Namespace = controlPlane.Name+"-template", controlPlane.Namespace
	machine.Labels = maps.Clone(controlPlane.Spec.MachineTemplate.ObjectMeta.Labels)
	machine.Spec.InfrastructureRef.Name = machine.Name

	complete(&machine.Labels, &machine.Spec, cluster, map[string]string{
		clusterv1.MachineControlPlaneLabel: "", clusterv1.MachineControlPlaneNameLabel: format.MustFormatValue(controlPlane.Name),
	})

	return origin{
		ref:         manifest.Ref{Kind: KindTalosControlPlane, Namespace: controlPlane.Namespace, Name: controlPlane.Name},
		clusterName: cluster, machine: machineconfig.NewMachine(machine), config: &controlPlane.Spec.TalosConfigSpec,
	}
}

// templated is the machine that a template stands for, as Cluster API would make it.
func templated(kind string, owner metav1.ObjectMeta, clusterName string, template clusterv1.MachineTemplateSpec, ownerLabel string) origin {
	machine := &clusterv1.Machine{Spec: *template.Spec.DeepCopy()}
	machine.Name, machine.Namespace = owner.Name+"-template", owner.Namespace
	machine.Labels = maps.Clone(template.Labels)
	machine.Spec.InfrastructureRef.Name = machine.Name

	complete(&machine.Labels, &machine.Spec, clusterName, map[string]string{ownerLabel: owner.Name})

	return origin{
		ref:         manifest.Ref{Kind: kind, Namespace: owner.Namespace, Name: owner.Name},
		clusterName: clusterName, field: "spec.template.spec.bootstrap.configRef", bootstrap: template.Spec.Bootstrap,
		machine: machineconfig.NewMachine(machine),
	}
}

// complete adds what Cluster API sets on every machine: the cluster's label, those of the owner, and the "v" of the version.
func complete(labels *map[string]string, spec *clusterv1.MachineSpec, clusterName string, more map[string]string) {
	if *labels == nil {
		*labels = map[string]string{}
	}

	(*labels)[clusterv1.ClusterNameLabel] = clusterName
	maps.Copy(*labels, more)

	if spec.Version != "" && !strings.HasPrefix(spec.Version, "v") {
		spec.Version = "v" + spec.Version
	}
}

func (o origin) subject(set *manifest.Set) (*Subject, *MissingError) {
	missing := func(field, kind, name string) *MissingError {
		return &MissingError{From: o.ref, Field: field, Ref: manifest.Ref{Kind: kind, Namespace: o.ref.Namespace, Name: name}}
	}

	cluster := find(set.Clusters, o.ref.Namespace, o.clusterName)
	if cluster == nil {
		return nil, missing("spec.clusterName", machineconfig.KindCluster, o.clusterName)
	}

	subject := &Subject{Ref: o.ref, Machine: o.machine, Cluster: cluster}
	ref := o.bootstrap.ConfigRef

	if o.config != nil {
		subject.TalosConfig = &bootstrapv1.TalosConfig{Spec: *o.config}
		subject.TalosConfig.Name, subject.TalosConfig.Namespace = o.machine.Name, o.ref.Namespace

		return subject, nil
	}

	if ref.Kind == KindTalosConfigTemplate {
		template := find(set.TalosConfigTemplates, o.ref.Namespace, ref.Name)
		if template == nil {
			return nil, missing(o.field, ref.Kind, ref.Name)
		}

		subject.Template = template.Name
		subject.TalosConfig = &bootstrapv1.TalosConfig{Spec: template.Spec.Template.Spec}
		subject.TalosConfig.Name, subject.TalosConfig.Namespace = o.machine.Name, o.ref.Namespace

		return subject, nil
	}

	// A reference of Ichor's group to another kind leads nowhere, whatever is called so.
	kind := cmp.Or(ref.Kind, machineconfig.KindTalosConfig)
	if kind == machineconfig.KindTalosConfig {
		subject.TalosConfig = find(set.TalosConfigs, o.ref.Namespace, ref.Name)
	}

	if subject.TalosConfig == nil {
		return nil, missing(o.field, kind, ref.Name)
	}

	return subject, nil
}

// find finds an object by namespace and name.
func find[T metav1.Object](objects []T, namespace, name string) T {
	for _, object := range objects {
		if object.GetNamespace() == namespace && object.GetName() == name {
			return object
		}
	}

	var none T

	return none
}

// in keeps the objects of a namespace.
func in[S any, T interface {
	*S
	metav1.Object
}](objects []T, namespace string) []S {
	var kept []S

	for _, object := range objects {
		if object.GetNamespace() == namespace {
			kept = append(kept, *object)
		}
	}

	return kept
}

// Matches tells whether a name on the command line means the subject: the name of the machine or of the object that makes it,
// with the kind or namespace before it where needed: "worker-1", "MachineDeployment/workers", "default/worker-1".
func (s *Subject) Matches(name string) bool {
	prefix, rest, ok := strings.Cut(name, "/")
	if ok {
		name = rest
		if !strings.EqualFold(prefix, s.Ref.Kind) && prefix != s.Ref.Namespace {
			return false
		}
	}

	return name == s.Machine.Name || name == s.Ref.Name
}

// Object is the object in the files that a source means. What stands in a template is said of the template.
func (s *Subject) Object(source machineconfig.Source) (ref manifest.Ref, path string) {
	ref = manifest.Ref{Kind: source.Kind, Namespace: s.Ref.Namespace, Name: source.Name}

	switch {
	case s.Ref.Kind == KindTalosControlPlane && source.Name == s.Machine.Name && source.Kind == machineconfig.KindTalosConfig:
		ref, path = s.Ref, strings.Replace(source.Path, "spec", "spec.talosConfigSpec", 1)
	case s.Ref.Kind == KindTalosControlPlane && source.Name == s.Machine.Name && source.Kind == s.Machine.Kind:
		ref, path = s.Ref, inControlPlane(source.Path)
	case source.Kind == s.Machine.Kind && source.Name == s.Machine.Name:
		ref, path = s.Ref, source.Path
		if ref.Kind != source.Kind || ref.Kind == machineconfig.KindMachinePool {
			path = inTemplate(path)
		}
	case source.Kind == machineconfig.KindTalosConfig && s.Template != "" && source.Name == s.TalosConfig.Name:
		ref.Kind, ref.Name, path = KindTalosConfigTemplate, s.Template, inTemplate(source.Path)
	default:
		path = source.Path
	}

	return ref, path
}

// inControlPlane is where a TalosControlPlane has what is at a path of its Machines.
func inControlPlane(path string) string {
	if path == "" || path == "spec.version" {
		return path
	}

	return "spec.machineTemplate." + path
}

func inTemplate(path string) string {
	if path == "" {
		return ""
	}

	return "spec.template." + path
}
