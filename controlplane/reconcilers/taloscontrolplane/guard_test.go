// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Nothing is looked at before the caches have what was written for a control plane, and what was written for another makes no difference.
func TestGuard(t *testing.T) {
	tcp, other := planeWith(nil), planeWith(nil)
	other.Name = "other"

	tests := map[string]struct {
		// written are versions of Machines, one after the other.
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
			g := newGuard(func(_ context.Context, kind schema.GroupVersionKind) (string, error) {
				if kind != machineGVK.GroupVersionKind {
					t.Errorf("the cache of %s is asked", kind)
				}

				return test.cache, test.fault
			})

			for _, version := range test.written {
				g.DeferNextReconcileUntilCacheUpToDate(tcp, machineGVK, version)
			}

			for range 2 {
				behind, err := g.behind(t.Context(), client.ObjectKeyFromObject(tcp))
				if behind != test.behind || !errors.Is(err, test.fault) {
					t.Errorf("behind %t, %v; want %t, %v", behind, err, test.behind, test.fault)
				}
			}

			if behind, err := g.behind(t.Context(), client.ObjectKeyFromObject(other)); behind || err != nil {
				t.Errorf("another control plane waits: %t, %v", behind, err)
			}

			if kept := len(g.written); kept != 0 && !test.behind && test.fault == nil {
				t.Errorf("%d records are kept, and nothing is waited for", kept)
			}

			// A Reconcile that goes on would fail: there is no client.
			if r := (&Reconciler{guard: g}); test.behind {
				result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(tcp)})
				if err != nil || result.RequeueAfter != guardPause {
					t.Errorf("%v, %v", result, err)
				}
			}

			g.ClearConsistencyStore(client.ObjectKeyFromObject(tcp), tcp.UID)

			if len(g.written) != 0 {
				t.Error("a control plane that is gone is remembered")
			}
		})
	}
}
