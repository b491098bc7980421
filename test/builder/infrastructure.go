// SPDX-License-Identifier: Apache-2.0

package builder

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
)

// Infrastructure is a provider's objects.
type Infrastructure interface {
	// Cluster, Machine and Template are named objects of the provider.
	Cluster(name string) client.Object
	Machine(name string) client.Object
	Template(name string) client.Object
}

// Sim is the provider sim: simulated Talos nodes. Its zero value leaves everything to the provider.
type Sim struct {
	// Fidelity of a cluster's machines.
	Fidelity infrav1.Fidelity

	// Endpoint of the cluster.
	Endpoint infrav1.APIEndpoint

	// FailureDomains of the cluster.
	FailureDomains []clusterv1.FailureDomain

	// MachineSpec is that of machines, and of what they are made from.
	MachineSpec infrav1.SimMachineSpec
}

// Cluster is a SimCluster.
func (s Sim) Cluster(name string) client.Object {
	return &infrav1.SimCluster{
		TypeMeta:   simKind("SimCluster"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       infrav1.SimClusterSpec{Fidelity: s.Fidelity, ControlPlaneEndpoint: s.Endpoint, FailureDomains: s.FailureDomains},
	}
}

// Machine is a SimMachine.
func (s Sim) Machine(name string) client.Object {
	return &infrav1.SimMachine{TypeMeta: simKind("SimMachine"), ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: s.MachineSpec}
}

// Template is a SimMachineTemplate. It says what the provider would take anyway, since a template without a spec is refused.
func (s Sim) Template(name string) client.Object {
	s.MachineSpec.Platform = cmp.Or(s.MachineSpec.Platform, infrav1.PlatformCloud)

	return &infrav1.SimMachineTemplate{
		TypeMeta:   simKind("SimMachineTemplate"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       infrav1.SimMachineTemplateSpec{Template: infrav1.SimMachineTemplateResource{Spec: s.MachineSpec}},
	}
}

// Pool is a SimMachinePool.
func (s Sim) Pool(name string) client.Object {
	return &infrav1.SimMachinePool{
		TypeMeta: simKind("SimMachinePool"), ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: infrav1.SimMachinePoolSpec{Machine: s.MachineSpec},
	}
}

func simKind(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: infrav1.GroupVersion.String(), Kind: kind}
}

// CAPD is Cluster API's own provider for tests, with machines in memory that nobody boots.
type CAPD struct{}

// capdGroup is CAPD's.
var capdGroup = schema.GroupVersion{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2"}

// inMemory is the spec of everything of CAPD that is in memory.
func inMemory() map[string]any {
	return map[string]any{"backend": map[string]any{"inMemory": map[string]any{}}}
}

func capdObject(kind, name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(capdGroup.WithKind(kind))
	object.SetName(name)

	return object
}

// Cluster is a DevCluster.
func (CAPD) Cluster(name string) client.Object {
	cluster := capdObject("DevCluster", name, inMemory())
	// CAPD adds annotations, and panics where there is none yet.
	cluster.SetAnnotations(map[string]string{clusterv1.ClusterNameLabel: name})

	return cluster
}

// Machine is a DevMachine.
func (CAPD) Machine(name string) client.Object { return capdObject("DevMachine", name, inMemory()) }

// Template is a DevMachineTemplate.
func (CAPD) Template(name string) client.Object {
	return capdObject("DevMachineTemplate", name, map[string]any{"template": map[string]any{"spec": inMemory()}})
}
