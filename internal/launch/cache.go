// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// Secrets are what a manager's cache has of them: those with the cluster-name label, which are Ichor's and Cluster API's own, and values
// only of those whose names the function wants kept: a machine config is written once and never read back, and ten thousand of them would
// fill the memory. The common annotations have the same value on many Secrets, which is kept once.
func Secrets(keep func(name string) bool, common ...string) cache.ByObject {
	labelled, err := labels.NewRequirement(clusterv1.ClusterNameLabel, selection.Exists, nil)
	utilruntime.Must(err) // the label is a constant

	return cache.ByObject{Label: labels.NewSelector().Add(*labelled), Transform: NewSlimmer().secret(keep, common)}
}

// NewMetadata returns a cache of the names and resource versions of all Secrets and ConfigMaps, with the annotations that are named and without any value. It is apart from
// the manager's cache, because that one selects Secrets by label, and what users write has no label to select by.
func NewMetadata(mgr ctrl.Manager, namespace string, annotations ...string) (cache.Cache, error) {
	metadata, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient:        mgr.GetHTTPClient(),
		Scheme:            mgr.GetScheme(),
		Mapper:            mgr.GetRESTMapper(),
		DefaultNamespaces: namespaces(namespace),
		DefaultTransform:  NewSlimmer().Metadata(annotations...),
	})
	if err != nil {
		return nil, fmt.Errorf("cache of the metadata of Secrets and ConfigMaps: %w", err)
	}

	if err := mgr.Add(unledCache{metadata}); err != nil {
		return nil, fmt.Errorf("cache of the metadata of Secrets and ConfigMaps: %w", err)
	}

	return metadata, nil
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
