// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// Secrets are what a manager's cache has of them: those with the cluster-name label, which are Ichor's and Cluster API's own, and values
// only of those whose names the function wants kept: a machine config is written once and never read back, and ten thousand of them would
// fill the memory.
func Secrets(keep func(name string) bool) cache.ByObject {
	labelled, err := labels.NewRequirement(clusterv1.ClusterNameLabel, selection.Exists, nil)
	utilruntime.Must(err) // the label is a constant

	return cache.ByObject{Label: labels.NewSelector().Add(*labelled), Transform: stripSecret(keep)}
}

// strippedValue stands for a value that the cache does not keep. It is not empty, so that an empty value is still seen to
// be one, and also when an object comes through here twice.
var strippedValue = []byte{'-'}

// stripSecret leaves the keys of a Secret, whether their values are empty and, of the values, only those that are wanted.
func stripSecret(keep func(name string) bool) toolscache.TransformFunc {
	return func(in any) (any, error) {
		secret, ok := in.(*corev1.Secret)
		if !ok {
			return in, nil
		}

		secret.ManagedFields = nil
		// kubectl apply leaves a copy of the whole object there, values included.
		delete(secret.Annotations, corev1.LastAppliedConfigAnnotation)

		if keep(secret.Name) {
			return secret, nil
		}

		for key, value := range secret.Data {
			if len(value) > 0 {
				secret.Data[key] = strippedValue
			}
		}

		return secret, nil
	}
}

// NewMetadata returns a cache of the names and resource versions of all Secrets and ConfigMaps, without any value. It is apart from
// the manager's cache, because that one selects Secrets by label, and what users write has no label to select by.
func NewMetadata(mgr ctrl.Manager, namespace string) (cache.Cache, error) {
	metadata, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient:        mgr.GetHTTPClient(),
		Scheme:            mgr.GetScheme(),
		Mapper:            mgr.GetRESTMapper(),
		DefaultNamespaces: namespaces(namespace),
		DefaultTransform:  stripMetadata,
	})
	if err != nil {
		return nil, fmt.Errorf("cache of the metadata of Secrets and ConfigMaps: %w", err)
	}

	if err := mgr.Add(unledCache{metadata}); err != nil {
		return nil, fmt.Errorf("cache of the metadata of Secrets and ConfigMaps: %w", err)
	}

	return metadata, nil
}

// stripMetadata leaves what a watch needs to tell which object changed, whether the manager's cache has it too, and whether a move
// takes it along.
func stripMetadata(in any) (any, error) {
	object, ok := in.(*metav1.PartialObjectMetadata)
	if !ok {
		return in, nil
	}

	stripped := metav1.ObjectMeta{
		Name: object.Name, Namespace: object.Namespace, UID: object.UID, ResourceVersion: object.ResourceVersion,
	}

	for _, label := range []string{clusterv1.ClusterNameLabel, clusterctlv1.ClusterctlMoveLabel} {
		if value, ok := object.Labels[label]; ok {
			metav1.SetMetaDataLabel(&stripped, label, value)
		}
	}

	object.ObjectMeta = stripped

	return object, nil
}

// unledCache runs before the manager leads, as its own cache does: a new leader begins with a full cache.
type unledCache struct{ cache.Cache }

// NeedLeaderElection is false.
func (unledCache) NeedLeaderElection() bool { return false }

// within limits a cache to a namespace, or to nothing when it is empty. With such a selector the cache asks for the objects of the namespace
// alone, so that rights in it suffice. A cache of DefaultNamespaces would do so, too; but its informers are none of those that Cluster
// API's controller can ask what they have seen, and each reconcile after a write would fail.
func within(namespace string) fields.Selector {
	if namespace == "" {
		return nil
	}

	return fields.OneTermEqualSelector("metadata.namespace", namespace)
}

func namespaces(namespace string) map[string]cache.Config {
	if namespace == "" {
		return nil
	}

	return map[string]cache.Config{namespace: {}}
}
