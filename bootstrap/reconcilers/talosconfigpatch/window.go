// SPDX-License-Identifier: Apache-2.0

package talosconfigpatch

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/lru"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

const (
	// maxWindows bounds the namespaces whose last survey is kept.
	maxWindows = 256

	// maxAge is how long a survey is good when nothing that is watched has changed. The periodic reconcile finds out what was missed.
	maxAge = time.Minute

	// ownShare is the part of Settle after which a patch that has changed itself may have a new survey.
	ownShare = 5
)

// windows has the last survey of each namespace.
type windows struct {
	mu    sync.Mutex
	byKey *lru.Cache
}

// window is the last survey of a namespace.
type window struct {
	// changes counts what was seen to change in the namespace.
	changes atomic.Uint64

	// making is held while a survey is made, so that others wait for it instead of making one, too.
	making sync.Mutex
	last   *survey
}

func newWindows() windows { return windows{byKey: lru.New(maxWindows)} }

func (w *windows) of(namespace string) *window {
	w.mu.Lock()
	defer w.mu.Unlock()

	if cached, ok := w.byKey.Get(namespace); ok {
		if found, ok := cached.(*window); ok {
			return found
		}
	}

	created := &window{}
	w.byKey.Add(namespace, created)

	return created
}

// survey returns a survey of the patch's namespace with the patch as it is, or how long to wait until one may be made: a survey is
// made at most once in Settle however many patches there are and however much changes, and sooner only for a patch that has itself changed.
func (r *Reconciler) survey(ctx context.Context, patch *bootstrapv1.TalosConfigPatch) (*survey, time.Duration, error) {
	window := r.windows.of(patch.Namespace)

	window.making.Lock()
	defer window.making.Unlock()

	// Before anything is read: what changes from here on counts for the next one.
	changes := window.changes.Load()

	if last := window.last; last != nil {
		age, pause, has := r.Clock.Since(last.made), r.Settle, last.has(patch)
		if has && last.changes == changes && age < last.lasts(r.Settle) {
			return last, 0, nil
		}

		if !has {
			pause /= ownShare
		}

		if age < pause {
			return nil, pause - age, nil
		}
	}

	made, err := r.make(ctx, patch.Namespace)
	if err != nil {
		return nil, 0, err
	}

	made.changes, made.made = changes, r.Clock.Now()
	window.last = made

	if !made.has(patch) {
		// The cache has a newer one by now, which wakes its own reconcile.
		return nil, r.Settle / ownShare, nil
	}

	return made, 0, nil
}
