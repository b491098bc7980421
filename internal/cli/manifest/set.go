// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	kjson "sigs.k8s.io/json"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/cli/admission"
	"github.com/maesh-dev/ichor/internal/yamlsyntax"
)

// Problem is something wrong with one object, which the object alone shows.
type Problem struct {
	Object  *Object
	Field   string
	Message string

	// Warning marks what is not refused.
	Warning bool
}

// Set is what was read, sorted by kind. Objects with problems that are not warnings are not in it.
type Set struct {
	Clusters           []*clusterv1.Cluster
	Machines           []*clusterv1.Machine
	MachinePools       []*clusterv1.MachinePool
	MachineSets        []*clusterv1.MachineSet
	MachineDeployments []*clusterv1.MachineDeployment

	TalosConfigs         []*bootstrapv1.TalosConfig
	TalosConfigTemplates []*bootstrapv1.TalosConfigTemplate
	TalosClusterConfigs  []*bootstrapv1.TalosClusterConfig
	TalosConfigPatches   []*bootstrapv1.TalosConfigPatch
	TalosStorages        []*bootstrapv1.TalosStorage

	TalosControlPlanes         []*controlplanev1.TalosControlPlane
	TalosControlPlaneTemplates []*controlplanev1.TalosControlPlaneTemplate

	Secrets []*corev1.Secret

	// ConfigMaps hold what patches refer to.
	ConfigMaps []*corev1.ConfigMap

	// Problems of single objects, in the order of the input.
	Problems []Problem

	// Ignored are the objects that play no part.
	Ignored []*Object

	objects map[Ref]*Object
	files   []string
}

// FileNames are the files that were read, in their order.
func (s *Set) FileNames() []string { return s.files }

// Object finds an object that was read, with or without problems.
func (s *Set) Object(ref Ref) *Object { return s.objects[ref] }

// Failed tells whether an object has a problem that is not a warning.
func (s *Set) Failed() bool {
	for i := range s.Problems {
		if !s.Problems[i].Warning {
			return true
		}
	}

	return false
}

// Load reads the files into a Set. Objects that name no namespace are taken to be in the given one. What is wrong with single
// objects is in Set.Problems; the error tells what could not be read at all, and consists of UnreadableErrors.
func Load(files Files, namespace string, rules *admission.Rules) (*Set, error) {
	documents, err := files.Read()
	faults := []error{err}
	set := &Set{objects: map[Ref]*Object{}}

	for _, document := range documents {
		if !slices.Contains(set.files, document.File) {
			set.files = append(set.files, document.File)
		}

		objects, err := parse(document, namespace)
		faults = append(faults, err)

		for _, object := range objects {
			if err := set.add(object, rules); err != nil {
				return nil, err
			}
		}
	}

	return set, errors.Join(faults...)
}

func (s *Set) problem(object *Object, field, format string, args ...any) {
	s.Problems = append(s.Problems, Problem{Object: object, Field: field, Message: fmt.Sprintf(format, args...)})
}

// add sorts an object in. An error means that the rules are broken.
func (s *Set) add(object *Object, rules *admission.Rules) error {
	into, strict := s.target(object)
	if into == nil {
		s.other(object, rules)

		return nil
	}

	if other, twice := s.objects[object.Ref]; twice {
		s.problem(object, "metadata.name", "the object is there already, at %s: remove one of them", other.Location)

		return nil
	}

	s.objects[object.Ref] = object

	if strict {
		findings, err := rules.Check(object.content)
		if err != nil {
			return err
		}

		for _, finding := range findings {
			s.problem(object, finding.Field, "%s", finding.Message)
		}

		if len(findings) > 0 {
			return nil
		}
	}

	s.decode(object, into, strict)

	return nil
}

// target is where an object of the kind is decoded to, nil when the kind plays no part. strict is for Ichor's own kinds.
func (s *Set) target(object *Object) (into metav1.Object, strict bool) {
	switch object.GVK {
	case clusterv1.GroupVersion.WithKind("Cluster"):
		return &clusterv1.Cluster{}, false
	case clusterv1.GroupVersion.WithKind("Machine"):
		return &clusterv1.Machine{}, false
	case clusterv1.GroupVersion.WithKind("MachinePool"):
		return &clusterv1.MachinePool{}, false
	case clusterv1.GroupVersion.WithKind("MachineSet"):
		return &clusterv1.MachineSet{}, false
	case clusterv1.GroupVersion.WithKind("MachineDeployment"):
		return &clusterv1.MachineDeployment{}, false
	case bootstrapv1.GroupVersion.WithKind("TalosConfig"):
		return &bootstrapv1.TalosConfig{}, true
	case bootstrapv1.GroupVersion.WithKind("TalosConfigTemplate"):
		return &bootstrapv1.TalosConfigTemplate{}, true
	case bootstrapv1.GroupVersion.WithKind("TalosClusterConfig"):
		return &bootstrapv1.TalosClusterConfig{}, true
	case bootstrapv1.GroupVersion.WithKind("TalosConfigPatch"):
		return &bootstrapv1.TalosConfigPatch{}, true
	case bootstrapv1.GroupVersion.WithKind("TalosStorage"):
		return &bootstrapv1.TalosStorage{}, true
	case controlplanev1.GroupVersion.WithKind("TalosControlPlane"):
		return &controlplanev1.TalosControlPlane{}, true
	case controlplanev1.GroupVersion.WithKind("TalosControlPlaneTemplate"):
		return &controlplanev1.TalosControlPlaneTemplate{}, true
	case corev1.SchemeGroupVersion.WithKind("Secret"):
		return &corev1.Secret{}, false
	case corev1.SchemeGroupVersion.WithKind("ConfigMap"):
		return &corev1.ConfigMap{}, false
	default:
		return nil, false
	}
}

// decode turns the object into its Go type. The decoder's own words are kept only where no secret can be in them.
func (s *Set) decode(object *Object, into metav1.Object, strict bool) {
	data, err := json.Marshal(object.content)
	if err != nil {
		s.problem(object, "", "cannot be encoded")

		return
	}

	unknown, err := kjson.UnmarshalStrict(data, into)
	if err != nil {
		if object.Kind == "Secret" {
			s.problem(object, "", "is no valid Secret: the values of data must be base64, those of stringData text")
		} else {
			message := "does not decode: " + err.Error()
			if advice := yamlsyntax.Leftovers(data); advice != "" {
				message += " (" + advice + ")"
			}

			s.problem(object, "", "%s", message)
		}

		return
	}

	for _, each := range unknown {
		s.Problems = append(s.Problems, Problem{Object: object, Message: each.Error(), Warning: !strict})
	}

	if strict && len(unknown) > 0 {
		return
	}

	if into.GetName() == "" {
		s.problem(object, "metadata.name", "must be set")

		return
	}

	s.keep(into)
}

func (s *Set) keep(object metav1.Object) {
	switch object := object.(type) {
	case *clusterv1.Cluster:
		s.Clusters = append(s.Clusters, object)
	case *clusterv1.Machine:
		s.Machines = append(s.Machines, object)
	case *clusterv1.MachinePool:
		s.MachinePools = append(s.MachinePools, object)
	case *clusterv1.MachineSet:
		s.MachineSets = append(s.MachineSets, object)
	case *clusterv1.MachineDeployment:
		s.MachineDeployments = append(s.MachineDeployments, object)
	case *bootstrapv1.TalosConfig:
		s.TalosConfigs = append(s.TalosConfigs, object)
	case *bootstrapv1.TalosConfigTemplate:
		s.TalosConfigTemplates = append(s.TalosConfigTemplates, object)
	case *bootstrapv1.TalosClusterConfig:
		s.TalosClusterConfigs = append(s.TalosClusterConfigs, object)
	case *bootstrapv1.TalosConfigPatch:
		s.TalosConfigPatches = append(s.TalosConfigPatches, object)
	case *bootstrapv1.TalosStorage:
		s.TalosStorages = append(s.TalosStorages, object)
	case *controlplanev1.TalosControlPlane:
		s.TalosControlPlanes = append(s.TalosControlPlanes, object)
	case *controlplanev1.TalosControlPlaneTemplate:
		s.TalosControlPlaneTemplates = append(s.TalosControlPlaneTemplates, object)
	case *corev1.Secret:
		mergeStringData(object)
		s.Secrets = append(s.Secrets, object)
	case *corev1.ConfigMap:
		s.ConfigMaps = append(s.ConfigMaps, object)
	}
}

// mergeStringData does what the API server does when it stores a Secret.
func mergeStringData(secret *corev1.Secret) {
	for key, value := range secret.StringData {
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}

		secret.Data[key] = []byte(value)
	}

	secret.StringData = nil
}

// other is for kinds that play no part, and for those that look as if they were meant to.
func (s *Set) other(object *Object, rules *admission.Rules) {
	switch {
	case object.GVK.Group == bootstrapv1.GroupVersion.Group || object.GVK.Group == controlplanev1.GroupVersion.Group:
		names, version := kindsOf(object.GVK.Group, rules)
		s.problem(object, "kind", "%s has no kind %s in %s; the kinds are %s of %s",
			object.GVK.Group, object.Kind, object.GVK.Version, strings.Join(names, ", "), version)
	case object.GVK.Group == clusterv1.GroupVersion.Group && object.GVK.Version != clusterv1.GroupVersion.Version && s.known(object.Kind):
		s.problem(object, "apiVersion", "is %s, and only %s is read: convert the object", object.GVK.GroupVersion(), clusterv1.GroupVersion)
	case foreign(object.GVK):
		s.Problems = append(s.Problems, Problem{
			Object: object, Field: "apiVersion", Warning: true,
			Message: fmt.Sprintf("is %s, which is another provider's: Ichor's kinds are in %s and %s",
				object.GVK.GroupVersion(), bootstrapv1.GroupVersion, controlplanev1.GroupVersion),
		})
	default:
		s.Ignored = append(s.Ignored, object)
	}
}

// foreign tells a kind of another provider's that may be taken for one of Ichor's.
func foreign(gvk schema.GroupVersionKind) bool {
	return (gvk.Group == "bootstrap.cluster.x-k8s.io" || gvk.Group == "controlplane.cluster.x-k8s.io") && !strings.HasPrefix(gvk.Kind, "Kubeadm")
}

// kindsOf are the kinds of a group of Ichor's, which has one version.
func kindsOf(group string, rules *admission.Rules) (names []string, version string) {
	for _, gvk := range rules.Kinds() {
		if gvk.Group == group {
			names, version = append(names, gvk.Kind), gvk.Version
		}
	}

	return names, version
}

func (s *Set) known(kind string) bool {
	target, _ := s.target(&Object{GVK: clusterv1.GroupVersion.WithKind(kind)})

	return target != nil
}
