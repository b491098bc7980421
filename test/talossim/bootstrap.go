// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"time"
)

// bootstrapDelay is what a node takes to start etcd when it has answered Bootstrap. A real one has an image to pull first.
const bootstrapDelay = 20 * time.Millisecond

// bootstrapEtcd has the node's member start a cluster, some time later. Until then the data directory is empty, and who asks again is
// answered as before, without effect. What was asked is in memory alone: a node that goes down before waits to be asked again.
// Source: Talos, internal/app/machined/internal/server/v1alpha1, Bootstrap; v1alpha1 sequencer, Bootstrap.
func (b *boot) bootstrapEtcd(etcd etcdMember) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bootstrapping != nil {
		return
	}
	done := make(chan struct{})
	b.bootstrapping = done
	b.tasks.Go(func() {
		defer close(done)
		select {
		case <-time.After(bootstrapDelay):
			if !etcd.exists() {
				err := etcd.bootstrap(b.ctx)
				b.node.fail(err)
				if err == nil {
					b.node.world.bootstraps.Add(1)
				}
			}
		case <-b.ctx.Done():
		}
		b.mu.Lock()
		b.bootstrapping = nil
		b.mu.Unlock()
		b.publish()
	})
}

// Bootstraps is how many etcd clusters the machines have made, those that are gone included. More calls of Bootstrap may have been answered: one
// is forgotten by a node that goes down before it has done it, and one that comes again meanwhile has no effect.
func (w *World) Bootstraps() int { return int(w.bootstraps.Load()) }

// awaitBootstrap waits until what Bootstrap has begun is done.
func (b *boot) awaitBootstrap(ctx context.Context) {
	b.mu.Lock()
	done := b.bootstrapping
	b.mu.Unlock()
	if done == nil {
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}
