// SPDX-License-Identifier: Apache-2.0

package builder

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
)

// ClusterBuilder builds a Cluster, its infrastructure and its TalosClusterConfig.
type ClusterBuilder struct {
	cluster        *clusterv1.Cluster
	config         *bootstrapv1.TalosClusterConfig
	infrastructure Infrastructure
	controlPlane   Builder
}

// Cluster is one of simulated machines of full fidelity, without a control-plane provider.
func Cluster(name string) *ClusterBuilder {
	return &ClusterBuilder{
		cluster: &clusterv1.Cluster{
			TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: clusterv1.ClusterSpec{ClusterNetwork: clusterv1.ClusterNetwork{
				Pods:          clusterv1.NetworkRanges{CIDRBlocks: []string{"10.244.0.0/16"}},
				Services:      clusterv1.NetworkRanges{CIDRBlocks: []string{"10.96.0.0/12"}},
				ServiceDomain: "cluster.local",
			}},
		},
		config: &bootstrapv1.TalosClusterConfig{
			TypeMeta:   metav1.TypeMeta{APIVersion: bootstrapv1.GroupVersion.String(), Kind: "TalosClusterConfig"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: bootstrapv1.TalosClusterConfigSpec{
				ClusterTargeting: bootstrapv1.ClusterTargeting{ClusterName: name},
				Talos:            bootstrapv1.TalosSpec{Version: TalosVersion},
			},
		},
		infrastructure: Sim{Fidelity: infrav1.FidelityFull},
	}
}

// Light has simulated machines with a model of etcd and without Kubernetes, which start in milliseconds.
func (b *ClusterBuilder) Light() *ClusterBuilder { return b.On(Sim{Fidelity: infrav1.FidelityLight}) }

// InMemory has simulated machines with a model of etcd and a Kubernetes API in memory.
func (b *ClusterBuilder) InMemory() *ClusterBuilder {
	return b.On(Sim{Fidelity: infrav1.FidelityInMemory})
}

// On is the infrastructure.
func (b *ClusterBuilder) On(infrastructure Infrastructure) *ClusterBuilder {
	b.infrastructure = infrastructure

	return b
}

// Label sets a label of the Cluster.
func (b *ClusterBuilder) Label(key, value string) *ClusterBuilder {
	metav1.SetMetaDataLabel(&b.cluster.ObjectMeta, key, value)

	return b
}

// ControlPlane has the cluster's control-plane machines made by a control plane, the last of the builder's objects: a TalosControlPlane, if it
// is a ControlPlaneBuilder.
func (b *ClusterBuilder) ControlPlane(controlPlane Builder) *ClusterBuilder {
	b.controlPlane = controlPlane

	return b
}

// With changes the Cluster as built so far.
func (b *ClusterBuilder) With(change func(*clusterv1.Cluster)) *ClusterBuilder {
	change(b.cluster)

	return b
}

// Config changes the TalosClusterConfig as built so far.
func (b *ClusterBuilder) Config(change func(*bootstrapv1.TalosClusterConfigSpec)) *ClusterBuilder {
	change(&b.config.Spec)

	return b
}

// Topology has everything made of a ClusterClass instead, by Cluster API's topology controller.
func (b *ClusterBuilder) Topology(topology clusterv1.Topology) *ClusterBuilder {
	b.infrastructure, b.controlPlane, b.cluster.Spec.Topology = nil, nil, topology

	return b
}

// Objects are the infrastructure, the TalosClusterConfig, the control plane if there is one, and the Cluster.
func (b *ClusterBuilder) Objects() []client.Object {
	if b.infrastructure == nil {
		return []client.Object{b.config.DeepCopy(), b.cluster.DeepCopy()}
	}

	infrastructure := b.infrastructure.Cluster(b.cluster.Name)

	cluster := b.cluster.DeepCopy()
	cluster.Spec.InfrastructureRef = referenceTo(infrastructure)

	objects := []client.Object{infrastructure, b.config.DeepCopy()}

	if b.controlPlane != nil {
		made := b.controlPlane.Objects()
		cluster.Spec.ControlPlaneRef = referenceTo(made[len(made)-1])
		objects = append(objects, made...)
	}

	return append(objects, cluster)
}
