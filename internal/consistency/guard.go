// SPDX-License-Identifier: Apache-2.0

package consistency

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
	"sigs.k8s.io/cluster-api/feature"
	capicontroller "sigs.k8s.io/cluster-api/util/controller"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// pause is when to look again whether the cache has what was written.
const pause = 100 * time.Millisecond

// Deferrer is told what a reconcile of an object has written, and holds the next one back until the cache has it.
type Deferrer interface {
	// DeferNextReconcileUntilCacheUpToDate notes that an object of a kind was written at a resource version.
	DeferNextReconcileUntilCacheUpToDate(reconciled metav1.Object, kind capicontroller.GroupVersionKindType, version string)

	// ClearConsistencyStore forgets an object that is gone.
	ClearConsistencyStore(key client.ObjectKey, uid types.UID)
}

// Guard is a reconciler that holds another one back, and the Deferrer that it goes by.
type Guard struct {
	reconciler reconcile.Reconciler

	// version is that of a kind's cache; empty until the cache is filled.
	version func(context.Context, schema.GroupVersionKind) (string, error)

	mu      sync.Mutex
	written map[client.ObjectKey]map[schema.GroupVersionKind]string
}

// NewGuard returns a Guard of the reconciler, which reads from the manager's cache.
func NewGuard(mgr ctrl.Manager, reconciler reconcile.Reconciler) *Guard {
	return newGuard(reconciler, func(ctx context.Context, kind schema.GroupVersionKind) (string, error) {
		informer, err := mgr.GetCache().GetInformerForKind(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return "", err
		}

		shared, ok := informer.(toolscache.SharedIndexInformer)
		if !ok {
			return "", fmt.Errorf("its informer is a %T", informer)
		}

		return shared.GetStore().LastStoreSyncResourceVersion(), nil
	})
}

func newGuard(reconciler reconcile.Reconciler, version func(context.Context, schema.GroupVersionKind) (string, error)) *Guard {
	return &Guard{reconciler: reconciler, version: version, written: map[client.ObjectKey]map[schema.GroupVersionKind]string{}}
}

// Deferrer returns what the reconciler is to tell of its writes: Cluster API's controller when that holds reconciles back, else the Guard.
func (g *Guard) Deferrer(built Deferrer) Deferrer {
	if feature.Gates.Enabled(feature.ReconcilerRateLimiting) {
		return built
	}

	return g
}

// Reconcile calls the reconciler, or comes back a moment later when a cache has not seen yet what was written for the object.
func (g *Guard) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	behind, err := g.behind(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}

	if behind {
		return ctrl.Result{RequeueAfter: pause}, nil
	}

	return g.reconciler.Reconcile(ctx, req)
}

// DeferNextReconcileUntilCacheUpToDate notes what was written for an object.
func (g *Guard) DeferNextReconcileUntilCacheUpToDate(reconciled metav1.Object, kind capicontroller.GroupVersionKindType, version string) {
	g.mu.Lock()
	defer g.mu.Unlock()

	key := client.ObjectKey{Namespace: reconciled.GetNamespace(), Name: reconciled.GetName()}
	if g.written[key] == nil {
		g.written[key] = map[schema.GroupVersionKind]string{}
	}

	if order, err := resourceversion.CompareResourceVersion(g.written[key][kind.GroupVersionKind], version); err != nil || order < 0 {
		g.written[key][kind.GroupVersionKind] = version
	}
}

// ClearConsistencyStore forgets an object that is gone.
func (g *Guard) ClearConsistencyStore(key client.ObjectKey, _ types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()

	delete(g.written, key)
}

// behind says whether a cache has not seen yet what was written for an object.
func (g *Guard) behind(ctx context.Context, key client.ObjectKey) (bool, error) {
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
