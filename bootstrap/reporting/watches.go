// SPDX-License-Identifier: Apache-2.0

package reporting

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/cluster-api/util/predicates"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// MapFunc names what a change of an object concerns. An error comes from a cache; what is named beside it is woken all the same.
type MapFunc func(context.Context, client.Object) ([]client.ObjectKey, error)

// requests are the requests for what forObject names. The periodic reconcile makes up for what an error has hidden.
func (forObject MapFunc) requests(ctx context.Context, object client.Object) []reconcile.Request {
	keys, err := forObject(ctx, object)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot tell what the change of an object concerns", "object", client.ObjectKeyFromObject(object))
	}

	requests := make([]reconcile.Request, len(keys))
	for i, key := range keys {
		requests[i] = reconcile.Request{NamespacedName: key}
	}

	return requests
}

// Wake wakes at once.
func Wake(forObject MapFunc) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(forObject.requests)
}

// WakeLater wakes some time after the first of many changes: each object once, however many there were.
func WakeLater(forObject MapFunc, after time.Duration) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

	wake := func(ctx context.Context, object client.Object, q queue) {
		for _, request := range forObject.requests(ctx, object) {
			q.AddAfter(request, after)
		}
	}

	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { wake(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { wake(ctx, e.ObjectNew, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { wake(ctx, e.Object, q) },
	}
}

// Metadata watches the Secrets or ConfigMaps of a cache that has their metadata only.
func Metadata(metadata cache.Cache, kind string, wakes handler.EventHandler, mgr ctrl.Manager) source.Source {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))

	return source.Kind[client.Object](metadata, object, wakes, predicates.TypedResourceIsChanged[client.Object](mgr.GetScheme(), mgr.GetLogger()))
}

// Own lets through what a report on an object itself depends on: its spec, labels, annotations (the watch filter, the pause), and the
// periodic event. Left out is the status, which mostly the report itself has written.
func Own() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, now := e.ObjectOld, e.ObjectNew

		return before.GetResourceVersion() == now.GetResourceVersion() ||
			before.GetUID() != now.GetUID() ||
			before.GetGeneration() != now.GetGeneration() ||
			before.GetDeletionTimestamp().IsZero() != now.GetDeletionTimestamp().IsZero() ||
			!maps.Equal(before.GetLabels(), now.GetLabels()) ||
			!maps.Equal(before.GetAnnotations(), now.GetAnnotations())
	}}
}
