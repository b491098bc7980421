// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/lru"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	capicontroller "sigs.k8s.io/cluster-api/util/controller"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/clustersecrets"
	"github.com/maesh-dev/ichor/internal/talos"
)

// pollPeriod and healthPeriod are those of a manager by default.
const (
	pollPeriod   = 20 * time.Second
	healthPeriod = time.Minute
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

// newProcess starts a manager on a store.
func newProcess(l *life, s *store, name string) *process {
	p := &process{life: l, store: s, name: name}
	told := funcr.New(func(_, args string) { l.say("%s: %s", name, args) }, funcr.Options{})
	p.ctx, p.stop = context.WithCancel(ctrl.LoggerInto(l.ctx, told))

	cached, live := p.client(), p.live()
	metadata := metadataCache{reader: cached}
	recorder := &events.FakeRecorder{}

	p.Reconciler = &Reconciler{
		Client: cached, APIReader: live, Metadata: metadata, Recorder: recorder, Clock: l.clock,
		Secrets:      clustersecrets.New(cached, live, metadata, recorder, l.clock),
		ClusterCache: clustercache.NewFakeEmptyClusterCache(),
		// Certificates are judged by the nodes, whose time is the real one.
		Talos:       talos.NewPool(talos.Options{Timeout: time.Minute}),
		GracePeriod: 5 * time.Minute, HealthInterval: healthPeriod, PollInterval: pollPeriod,

		deletions: capicontroller.NewClientWithDeleteResponseFromClient(cached), deferrer: p,
		memory: newMemory(), retries: newRetries(pollPeriod),
		authorities: &authorityCache{metadata: metadata, live: live, read: lru.New(maxAuthorities)},
	}

	return p
}

// DeferNextReconcileUntilCacheUpToDate notes that the cache must see what was written.
func (p *process) DeferNextReconcileUntilCacheUpToDate(metav1.Object, capicontroller.GroupVersionKindType, string) {
	p.behind = true
}

// ClearConsistencyStore has nothing to do.
func (p *process) ClearConsistencyStore(client.ObjectKey, types.UID) {}

// client reads from the process's cache and writes to the store, each write in a step.
func (p *process) client() client.Client {
	return interceptor.NewClient(p.store.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if p.dead {
				return errKilled
			}

			if err := p.cache.Get(ctx, key, object, options...); err != nil {
				return err
			}

			// Of Secrets the cache has those with the label of a cluster.
			if secret, ok := object.(*corev1.Secret); ok && secret.Labels[clusterv1.ClusterNameLabel] == "" {
				return apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
			}

			return nil
		},
		List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if p.dead {
				return errKilled
			}

			return p.cache.List(ctx, list, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return p.step(stepOf("create", object), func() error { return c.Create(ctx, object, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return p.step(stepOf("delete", object), func() error { return c.Delete(ctx, object, options...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			return p.step(stepOf("update", object), func() error { return c.Update(ctx, object, options...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return p.step(stepOf("patch", object), func() error { return c.Patch(ctx, object, patch, options...) })
		},
		Apply: p.applyStep,
		SubResourcePatch: func(ctx context.Context, c client.Client, resource string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			return p.step(stepOf("patch "+resource, object), func() error { return c.SubResource(resource).Patch(ctx, object, patch, options...) })
		},
	})
}

// live reads from the store. It comes before what must not be done twice, so it is a step, too.
func (p *process) live() client.Reader {
	return interceptor.NewClient(p.store.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			return p.step(stepOf("read", object), func() error { return c.Get(ctx, key, object, options...) })
		},
	})
}

func (p *process) applyStep(ctx context.Context, c client.WithWatch, applied runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	what := "apply"
	if object, ok := applied.(client.Object); ok {
		what = stepOf(what, object)
	}

	return p.step(what, func() error { return c.Apply(ctx, applied, options...) })
}

// stepOf tells of a step.
func stepOf(verb string, object client.Object) string {
	if kind := object.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return verb + " " + kind
	}

	return fmt.Sprintf("%s %T", verb, object)
}

// metadataCache is a cache of metadata, as far as the reconciler uses it.
type metadataCache struct {
	cache.Cache

	reader client.Reader
}

func (c metadataCache) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return c.reader.Get(ctx, key, object, options...)
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
