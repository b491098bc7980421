// SPDX-License-Identifier: Apache-2.0

package reporting

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// What fails comes again after the pause, though the queue would wait for an hour, and a fault that a user must mend does not.
func TestRetry(t *testing.T) {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Hour, time.Hour)
	queues := map[string]func() queue{
		"by priority": func() queue {
			return priorityqueue.New("priority", func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = limiter })
		},
		"by time": func() queue { return workqueue.NewTypedRateLimitingQueue[reconcile.Request](limiter) },
	}

	for name, newQueue := range queues {
		t.Run(name, func(t *testing.T) {
			q := newQueue()
			defer q.ShutDown()

			var fault error

			retried := Retry(reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) { return ctrl.Result{}, fault }))
			retried.pause = 50 * time.Millisecond

			if err := retried.Source().Start(t.Context(), q); err != nil {
				t.Fatal(err)
			}

			// As controller-runtime does with an error.
			reconciled := func(name string, err error) {
				t.Helper()

				req := reconcile.Request{}
				req.Name, fault = name, err
				q.Add(req)

				got, _ := q.Get()
				if got != req {
					t.Fatalf("got %v, want %v", got, req)
				}

				if _, err := retried.Reconcile(t.Context(), req); !errors.Is(err, fault) {
					t.Fatalf("got %v, want %v", err, fault)
				}

				if err != nil && !errors.Is(err, reconcile.TerminalError(nil)) {
					q.AddRateLimited(req)
				}

				q.Done(req)
			}

			reconciled("done", nil)
			reconciled("user", reconcile.TerminalError(errors.New("a fault of the inputs")))

			for range 3 {
				reconciled("failed", errors.New("no answer"))

				began := time.Now()
				got, _ := q.Get()

				if got.Name != "failed" || time.Since(began) > 10*time.Second {
					t.Fatalf("got %s after %s", got.Name, time.Since(began))
				}

				q.Done(got)
			}
		})
	}
}
