// SPDX-License-Identifier: Apache-2.0

package longhornsim

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
)

// loop has the Sim look whenever something has changed.
type loop struct {
	cancel context.CancelFunc
	ended  chan error
}

// syncTimeout bounds the wait for the caches.
const syncTimeout = time.Minute

// startLoop starts a manager with one controller for everything: what follows from a change may be anywhere.
func (s *Sim) startLoop(ctx context.Context) (*loop, error) {
	mgr, err := ctrl.NewManager(s.options.Config, ctrl.Options{
		Scheme: scheme(), Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return nil, err
	}

	everything := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{}}
	})

	b := ctrl.NewControllerManagedBy(mgr).Named("longhorn")
	for _, object := range []client.Object{
		&lh.BackingImage{}, &lh.Engine{}, &lh.InstanceManager{}, &lh.Node{}, &lh.Replica{}, &lh.Setting{}, &lh.Shard{},
		&lh.Volume{}, &lh.VolumeAttachment{},
		&corev1.Node{}, &corev1.Pod{}, &corev1.PersistentVolume{}, &storagev1.VolumeAttachment{}, &policyv1.PodDisruptionBudget{},
	} {
		b = b.Watches(object, everything)
	}

	if err := b.Complete(reconcile.Func(s.reconcile)); err != nil {
		return nil, err
	}

	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &loop{cancel: cancel, ended: make(chan error, 1)}

	go func() { l.ended <- mgr.Start(ctx) }()

	synced, stop := context.WithTimeout(ctx, syncTimeout)
	defer stop()

	if !mgr.GetCache().WaitForCacheSync(synced) {
		return nil, errors.Join(errors.New("the cache of the simulated Longhorn does not fill"), l.stop())
	}

	return l, nil
}

func (l *loop) stop() error {
	l.cancel()

	if err := <-l.ended; err != nil {
		return fmt.Errorf("the simulated Longhorn: %w", err)
	}

	return nil
}

// reconcile looks, and comes back when time alone will change something. Fake time comes with Advance.
func (s *Sim) reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if err := s.Settle(ctx); err != nil {
		return reconcile.Result{}, err
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	if _, passes := s.options.Clock.(clock.RealClock); !passes || s.wake.IsZero() {
		return reconcile.Result{}, nil
	}

	return reconcile.Result{RequeueAfter: max(time.Millisecond, s.wake.Sub(s.options.Clock.Now()))}, nil
}
