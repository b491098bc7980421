// SPDX-License-Identifier: Apache-2.0

package setup

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	capisecret "sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/launch"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// cached is what the manager's cache does with some kinds. Of Secrets it has the values of those that belong to a cluster as a whole, the
// kubeconfig among them, by which workload clusters are reached.
func cached() map[client.Object]cache.ByObject {
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))

	return map[client.Object]cache.ByObject{
		&corev1.Secret{}: launch.Secrets(isOfCluster),
		// Definitions are in no namespace, also for a manager of one namespace.
		definition: {Field: fields.Everything()},
	}
}

// isOfCluster says whether a Secret of the name belongs to a cluster as a whole.
func isOfCluster(name string) bool {
	_, ok := secrets.ClusterOf(name)

	return ok || capisecret.HasPurposeSuffix(name)
}

// workloadCache keeps of workload clusters what is asked of their Nodes, and nothing of what they run.
func workloadCache() clustercache.CacheOptions {
	return clustercache.CacheOptions{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         map[client.Object]cache.ByObject{&corev1.Node{}: {Transform: stripNode}},
	}
}

// stripNode leaves out the images of a Node and its volumes, which make up most of it.
func stripNode(in any) (any, error) {
	node, ok := in.(*corev1.Node)
	if !ok {
		return in, nil
	}

	node.ManagedFields = nil
	node.Status.Images = nil
	node.Status.VolumesAttached = nil
	node.Status.VolumesInUse = nil

	return node, nil
}

// isOurs says whether a Cluster's control plane is a TalosControlPlane. Others are not connected to.
func isOurs(cluster *clusterv1.Cluster) bool {
	ref := cluster.Spec.ControlPlaneRef

	return ref.APIGroup == controlplanev1.GroupVersion.Group && ref.Kind == "TalosControlPlane"
}
