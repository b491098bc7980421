// SPDX-License-Identifier: Apache-2.0

package reporting

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// longestPause is how long what has failed is put off at most.
const longestPause = time.Minute

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Retried is a reconciler that is called again within a minute for what has failed, however often it has. A queue waits ever longer, a quarter of
// an hour in the end: so long would machines wait for a right or an API server that has come back, of which no watch tells. The error is the
// queue's all the same, to be logged and counted.
type Retried struct {
	reconcile.Reconciler

	pause time.Duration
	queue atomic.Pointer[queue]
}

// Retry wraps a reconciler. Its Source must be among those of its controller.
func Retry(reconciler reconcile.Reconciler) *Retried {
	return &Retried{Reconciler: reconciler, pause: longestPause}
}

// Source has no events. It knows the controller's queue.
func (r *Retried) Source() source.Source {
	return source.Func(func(_ context.Context, q queue) error {
		r.queue.Store(&q)

		return nil
	})
}

// Reconcile calls the reconciler.
func (r *Retried) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	result, err := r.Reconciler.Reconcile(ctx, req)

	// What a user must mend is watched.
	if err == nil || errors.Is(err, reconcile.TerminalError(nil)) {
		return result, err
	}

	// Of two times the queue keeps the earlier one, and of two priorities the higher one.
	if q := r.queue.Load(); q == nil {
		return result, err
	} else if byPriority, ok := (*q).(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		byPriority.AddWithOpts(priorityqueue.AddOpts{After: r.pause, Priority: new(handler.LowPriority)}, req)
	} else {
		(*q).AddAfter(req, r.pause)
	}

	return result, err
}
