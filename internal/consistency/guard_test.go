// SPDX-License-Identifier: Apache-2.0

package consistency

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cluster-api/feature"
	capicontroller "sigs.k8s.io/cluster-api/util/controller"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var podKind = capicontroller.StructuredObject(corev1.SchemeGroupVersion, "Pod")

// Nothing is looked at before the caches have what was written for an object, and what was written for another makes no difference.
func TestGuard(t *testing.T) {
	node, other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	request := func(of client.Object) ctrl.Request {
		return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(of)}
	}

	tests := map[string]struct {
		// written are versions of Pods, one after the other.
		written []string
		cache   string
		fault   error
		behind  bool
	}{
		"nothing written":               {nil, "5", nil, false},
		"the cache has it":              {[]string{"10"}, "10", nil, false},
		"the cache has more":            {[]string{"9"}, "10", nil, false},
		"the cache is behind":           {[]string{"10"}, "9", nil, true},
		"behind the newest of several":  {[]string{"9", "11", "10"}, "10", nil, true},
		"the cache is not filled yet":   {[]string{"10"}, "", nil, true},
		"versions that are no numbers":  {[]string{"a"}, "b", nil, false},
		"the cache cannot be looked at": {[]string{"10"}, "10", errors.New("no kind"), false},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			called := 0
			g := newGuard(
				reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
					called++

					return ctrl.Result{}, nil
				}),
				func(_ context.Context, kind schema.GroupVersionKind) (string, error) {
					if kind != podKind.GroupVersionKind {
						t.Errorf("the cache of %s is asked", kind)
					}

					return test.cache, test.fault
				})

			for _, version := range test.written {
				g.DeferNextReconcileUntilCacheUpToDate(node, podKind, version)
			}

			for range 2 {
				before := called

				result, err := g.Reconcile(t.Context(), request(node))
				if !errors.Is(err, test.fault) {
					t.Errorf("error %v, want %v", err, test.fault)
				}

				if waits := result.RequeueAfter == pause; waits != test.behind {
					t.Errorf("%+v; behind: %t", result, test.behind)
				}

				if went := called > before; went != (!test.behind && test.fault == nil) {
					t.Errorf("the reconciler was called: %t", went)
				}
			}

			before := called

			if _, err := g.Reconcile(t.Context(), request(other)); err != nil || called != before+1 {
				t.Errorf("another object waits: %v", err)
			}

			if kept := len(g.written); kept != 0 && !test.behind && test.fault == nil {
				t.Errorf("%d records are kept, and nothing is waited for", kept)
			}

			g.ClearConsistencyStore(client.ObjectKeyFromObject(node), node.UID)

			if len(g.written) != 0 {
				t.Error("an object that is gone is remembered")
			}
		})
	}
}

// Cluster API's controller is told of writes, unless it waits for nothing.
func TestDeferrer(t *testing.T) {
	g := newGuard(nil, nil)
	built := newGuard(nil, nil)

	if got := g.Deferrer(built); got != built {
		t.Errorf("%T, and Cluster API's controller waits", got)
	}

	if err := feature.MutableGates.Set("ReconcilerRateLimiting=false"); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := feature.MutableGates.Set("ReconcilerRateLimiting=true"); err != nil {
			t.Error(err)
		}
	})

	if got := g.Deferrer(built); got != g {
		t.Errorf("%T, and Cluster API's controller waits for nothing", got)
	}
}
