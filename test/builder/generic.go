// SPDX-License-Identifier: Apache-2.0

package builder

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	generic "sigs.k8s.io/cluster-api/util/test/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// GenericHost is where the API server of a generic cluster would be.
const GenericHost = "c.example.com"

// Generic is the infrastructure of the generic kinds of Cluster API's test builder, which package standin plays where it runs.
type Generic struct{}

// GenericCluster is a Cluster on generic kinds, at GenericHost and with the label site: lab.
func GenericCluster(name string) *ClusterBuilder {
	return Cluster(name).On(Generic{}).Label("site", "lab").With(func(cluster *clusterv1.Cluster) {
		cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: GenericHost, Port: 6443}
	})
}

// GenericControlPlane is a control plane of one machine, of a kind that package standin plays. Give it to ClusterBuilder.ControlPlane.
func GenericControlPlane(name string) These {
	return These{genericObject(generic.ControlPlaneGroupVersion.WithKind(generic.GenericControlPlaneKind), name, map[string]any{
		"version": KubernetesVersion, "replicas": int64(1),
	})}
}

func genericObject(kind schema.GroupVersionKind, name string, spec map[string]any) client.Object {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(kind)
	object.SetName(name)

	return object
}

// Cluster is a GenericInfrastructureCluster.
func (Generic) Cluster(name string) client.Object {
	return genericObject(generic.InfrastructureGroupVersion.WithKind(generic.GenericInfrastructureClusterKind), name, map[string]any{
		"controlPlaneEndpoint": map[string]any{"host": GenericHost, "port": int64(6443)},
	})
}

// Machine is a GenericInfrastructureMachine.
func (Generic) Machine(name string) client.Object {
	return genericObject(generic.InfrastructureGroupVersion.WithKind(generic.GenericInfrastructureMachineKind), name, map[string]any{})
}

// Template is a GenericInfrastructureMachineTemplate.
func (Generic) Template(name string) client.Object {
	return genericObject(generic.InfrastructureGroupVersion.WithKind(generic.GenericInfrastructureMachineTemplateKind), name, emptyTemplate())
}

// Pool is a GenericInfrastructureMachinePool.
func (Generic) Pool(name string) client.Object {
	return genericObject(generic.InfrastructureGroupVersion.WithKind(generic.GenericInfrastructureMachinePoolKind), name, map[string]any{})
}

func emptyTemplate() map[string]any {
	return map[string]any{"template": map[string]any{"spec": map[string]any{}}}
}
