// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	toolscache "k8s.io/client-go/tools/cache"
	capicontroller "sigs.k8s.io/cluster-api/util/controller"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// guardPause is when to look again whether the cache has what was written.
const guardPause = 100 * time.Millisecond

// guard holds a reconcile back until the caches have what the one before it wrote. Cluster API's controller does that, but not when the
// feature gate ReconcilerRateLimiting is off: a Machine that was made a moment ago would then be made again.
type guard struct {
	// version is that of a kind's cache; empty until the cache is filled.
	version func(context.Context, schema.GroupVersionKind) (string, error)

	mu      sync.Mutex
	written map[client.ObjectKey]map[schema.GroupVersionKind]string
}

func newGuard(version func(context.Context, schema.GroupVersionKind) (string, error)) *guard {
	return &guard{version: version, written: map[client.ObjectKey]map[schema.GroupVersionKind]string{}}
}

// DeferNextReconcileUntilCacheUpToDate notes what was written for an object.
func (g *guard) DeferNextReconcileUntilCacheUpToDate(object metav1.Object, kind capicontroller.GroupVersionKindType, version string) {
	g.mu.Lock()
	defer g.mu.Unlock()

	key := client.ObjectKey{Namespace: object.GetNamespace(), Name: object.GetName()}
	if g.written[key] == nil {
		g.written[key] = map[schema.GroupVersionKind]string{}
	}

	if order, err := resourceversion.CompareResourceVersion(g.written[key][kind.GroupVersionKind], version); err != nil || order < 0 {
		g.written[key][kind.GroupVersionKind] = version
	}
}

// ClearConsistencyStore forgets an object that is gone.
func (g *guard) ClearConsistencyStore(key client.ObjectKey, _ types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()

	delete(g.written, key)
}

// behind says whether a cache has not seen yet what was written for an object.
func (g *guard) behind(ctx context.Context, key client.ObjectKey) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()

	for kind, version := range g.written[key] {
		seen, err := g.version(ctx, kind)
		if err != nil {
			return false, fmt.Errorf("cache of %s: %w", kind.Kind, err)
		}

		// Versions that cannot be compared would hold it back for ever.
		if order, err := resourceversion.CompareResourceVersion(version, seen); seen == "" || (err == nil && order > 0) {
			return true, nil
		}
	}

	delete(g.written, key)

	return false, nil
}

// cacheVersion reads the version of a manager's caches.
func cacheVersion(mgr ctrl.Manager) func(context.Context, schema.GroupVersionKind) (string, error) {
	return func(ctx context.Context, kind schema.GroupVersionKind) (string, error) {
		informer, err := mgr.GetCache().GetInformerForKind(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return "", err
		}

		shared, ok := informer.(toolscache.SharedIndexInformer)
		if !ok {
			return "", fmt.Errorf("its informer is a %T", informer)
		}

		return shared.GetStore().LastStoreSyncResourceVersion(), nil
	}
}
