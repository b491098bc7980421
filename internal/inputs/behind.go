// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// Behind names an object of those that select machines and that the cache does not have as it was when this was called; it is empty when there is none.
// A cache of one kind may be behind that of another: a Machine that was made right after a patch may be there before it. Whoever renders a config that is
// never rendered again asks first. All who ask at the same time share an answer, which costs a list of metadata for each of the kinds.
func (r *Reader) Behind(ctx context.Context, namespace string) (string, error) {
	return r.looks.after(namespace, func() (string, error) {
		for _, each := range []struct {
			kind   string
			cached client.ObjectList
		}{
			{machineconfig.KindTalosClusterConfig, &bootstrapv1.TalosClusterConfigList{}},
			{machineconfig.KindTalosStorage, &bootstrapv1.TalosStorageList{}},
			{machineconfig.KindTalosConfigPatch, &bootstrapv1.TalosConfigPatchList{}},
		} {
			name, err := r.behind(ctx, namespace, each.kind, each.cached)
			if err != nil {
				return "", err
			}

			if name != "" {
				return each.kind + " " + name, nil
			}
		}

		return "", nil
	})
}

// behind names one object of a kind.
func (r *Reader) behind(ctx context.Context, namespace, kind string, cached client.ObjectList) (string, error) {
	live := &metav1.PartialObjectMetadataList{}
	live.SetGroupVersionKind(bootstrapv1.GroupVersion.WithKind(kind + "List"))

	if err := r.live.List(ctx, live, client.InNamespace(namespace)); err != nil {
		return "", &secrets.ReadError{Object: kind + "s", Err: err}
	}

	if err := r.cache.List(ctx, cached, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list %T: %w", cached, err)
	}

	known := map[string]metav1.Object{}

	if err := meta.EachListItem(cached, func(item runtime.Object) error {
		object, err := meta.Accessor(item)
		if err == nil {
			known[object.GetName()] = object
		}

		return err
	}); err != nil {
		return "", fmt.Errorf("list %T: %w", cached, err)
	}

	return difference(known, live), nil
}

// difference names an object that is known as it was before the list was made.
func difference(known map[string]metav1.Object, live *metav1.PartialObjectMetadataList) string {
	var names []string

	for i := range live.Items {
		now := &live.Items[i]

		if then, ok := known[now.Name]; !ok || then.GetUID() != now.UID || then.GetGeneration() < now.Generation {
			names = append(names, now.Name)
		}

		delete(known, now.Name)
	}

	// What is not in the list is gone, or newer than the list.
	for name, object := range known {
		if order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), live.ResourceVersion); err == nil && order <= 0 {
			names = append(names, name)
		}
	}

	if len(names) == 0 {
		return ""
	}

	return slices.Min(names)
}

// maxLooks bounds the namespaces of which a look is shared. One that is forgotten is looked at once more.
const maxLooks = 1024

// looks lets those who need to look at a namespace at the same time share a look.
type looks struct {
	begun       atomic.Int64
	mu          sync.Mutex
	byNamespace *lru.Cache
}

// look is the last one at a namespace.
type look struct {
	mu     sync.Mutex
	number int64
	found  string
	err    error
}

func newLooks() *looks { return &looks{byNamespace: lru.New(maxLooks)} }

// after returns what a look finds that has begun after the call: that of somebody else, if there is one when this one's turn comes.
func (l *looks) after(namespace string, find func() (string, error)) (string, error) {
	called, last := l.begun.Load(), l.of(namespace)

	last.mu.Lock()
	defer last.mu.Unlock()

	// Somebody else's time may have run out before ours.
	ended := errors.Is(last.err, context.Canceled) || errors.Is(last.err, context.DeadlineExceeded)
	if last.number > called && !ended {
		return last.found, last.err
	}

	last.number = l.begun.Add(1)
	last.found, last.err = find()

	return last.found, last.err
}

func (l *looks) of(namespace string) *look {
	l.mu.Lock()
	defer l.mu.Unlock()

	if cached, ok := l.byNamespace.Get(namespace); ok {
		if found, ok := cached.(*look); ok {
			return found
		}
	}

	created := &look{}
	l.byNamespace.Add(namespace, created)

	return created
}
