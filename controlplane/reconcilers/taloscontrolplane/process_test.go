// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
)

// errKilled is what a manager gets to hear that is not there any more.
var errKilled = errors.New("the manager was killed")

// process is a manager that runs. It reads from a cache, which may be behind but for what it has written itself.
type process struct {
	*Reconciler

	life  *life
	store *store
	name  string
	dead  bool

	// cache is what it sees. Behind is true when it has to see its own writes first.
	cache  client.WithWatch
	seen   int
	behind bool

	stop context.CancelFunc
	ctx  context.Context //nolint:containedctx // That of the process: it ends with it.
}

// step does something that others can see, if the manager lives so long.
func (p *process) step(what string, do func() error) error {
	if p.dead {
		return errKilled
	}

	p.life.happen(p, what, false)

	if p.dead {
		return errKilled
	}

	err := do()

	// Who hears that somebody has written first, and looks again, finds what that was.
	if apierrors.IsConflict(err) {
		p.look()
	}

	p.life.happen(p, what, true)

	if p.dead {
		return errKilled
	}

	return err
}

// kill ends the process: nothing of it is left, and nothing that it does has an effect.
func (p *process) kill() {
	p.dead = true
	p.stop()
	p.Talos.Close()
}

// look has the cache see everything that there is.
func (p *process) look() {
	p.behind = false

	if p.cache != nil && p.seen == p.store.writes {
		return
	}

	objects, err := p.store.objects(p.life.ctx)
	p.life.must(err)

	p.cache, p.seen = seenAt(objects), p.store.writes
}

// reconcile has it look at the control plane once, and says for how long it wants to wait then. Its cache may be behind.
func (p *process) reconcile() time.Duration {
	if p.cache == nil || p.behind || p.life.rng.IntN(3) > 0 {
		p.look()
	}

	result, err := p.Reconcile(p.ctx, ctrl.Request{NamespacedName: lifeKey})

	if tcp := (&controlplanev1.TalosControlPlane{}); p.store.Get(p.life.ctx, lifeKey, tcp) == nil {
		plan := tcp.Status.Plan
		p.life.say("%s: %s %s: %s (%v)", p.name, plan.Action, plan.Reason, plan.Message, err)
	}

	if err != nil {
		return retryPause
	}

	return result.RequeueAfter
}
