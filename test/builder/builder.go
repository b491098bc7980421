// SPDX-License-Identifier: Apache-2.0

package builder

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

// Versions of what is built.
const (
	KubernetesVersion = "v1.36.1"
	TalosVersion      = "v1.14.1"
)

// Builder is what an object, or several that belong together, are made of. The objects have no namespace; what refers to others
// comes after them, so that they may be created in their order.
type Builder interface {
	Objects() []client.Object
}

// These are objects that are made already, so that they can be where a Builder is wanted.
type These []client.Object

// Objects are copies of them.
func (t These) Objects() []client.Object {
	copies := make([]client.Object, 0, len(t))

	for _, each := range t {
		if object, ok := each.DeepCopyObject().(client.Object); ok {
			copies = append(copies, object)
		}
	}

	return copies
}

// Objects are those of all builders, in their order.
func Objects(builders ...Builder) []client.Object {
	var all []client.Object
	for _, each := range builders {
		all = append(all, each.Objects()...)
	}

	return all
}

// named is the metadata of an object that belongs to a Cluster.
func named(name, cluster string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: cluster}}
}

// configSpec is that of TalosConfigs: the hostname is the Machine's name, so that nodes can be told apart.
func configSpec() bootstrapv1.TalosConfigSpec {
	return bootstrapv1.TalosConfigSpec{Hostname: bootstrapv1.HostnameSpec{Source: bootstrapv1.HostnameSourceMachineName}}
}

// bootstrapRef refers to an object of Ichor's bootstrap provider.
func bootstrapRef(kind, name string) clusterv1.Bootstrap {
	return clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
		APIGroup: bootstrapv1.GroupVersion.Group, Kind: kind, Name: name,
	}}
}

// referenceTo refers to an object that is built here.
func referenceTo(object client.Object) clusterv1.ContractVersionedObjectReference {
	kind := object.GetObjectKind().GroupVersionKind()

	return clusterv1.ContractVersionedObjectReference{APIGroup: kind.Group, Kind: kind.Kind, Name: object.GetName()}
}
