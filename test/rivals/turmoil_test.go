// SPDX-License-Identifier: Apache-2.0

package rivals_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/test/scale"
)

const (
	// longestLife is how long a manager lives at most. It needs about a second to begin to work on an idle machine.
	longestLife = 6 * time.Second

	// controlPlanes is which part of the machines are control planes: their configs hold keys, too.
	controlPlanes = 5
)

// rival is one of the two managers. It is killed at any moment, and comes back at once.
type rival struct {
	world  *scale.World
	name   string
	random *rand.Rand
}

func (r *rival) run(ctx context.Context, over <-chan struct{}) (kills int, err error) {
	webhooks, err := r.world.NewWebhookServer(r.name)
	if err != nil {
		return 0, err
	}

	options := r.world.ManagerOptions(r.name, webhooks, "--leader-elect=false")
	options.Unready = true

	for {
		process, err := r.world.StartProvider(ctx, options)
		if err != nil {
			return kills, err
		}

		life := time.NewTimer(time.Duration(r.random.Int64N(int64(longestLife))))

		select {
		case <-life.C:
		case <-over:
			life.Stop()

			return kills + 1, process.Kill()
		case <-ctx.Done():
			return kills, errors.Join(ctx.Err(), process.Kill())
		}

		if err = process.Kill(); err != nil {
			return kills, err
		}

		kills++
	}
}

// turnover has clusters appear and machines come and go. Some come under a name that went before.
type turnover struct {
	world  *scale.World
	random *rand.Rand
	every  time.Duration

	alive, gone []string
}

func (t *turnover) run(ctx context.Context) error {
	for i := range machines {
		if i%(machines/clusters) == 0 {
			if err := t.cluster(ctx, fmt.Sprintf("c%d", i/(machines/clusters))); err != nil {
				return err
			}
		}

		if err := t.come(ctx, i); err != nil {
			return err
		}

		if t.random.IntN(2) == 0 {
			if err := t.goAway(ctx); err != nil {
				return err
			}
		}

		if err := scale.Pause(ctx, t.every); err != nil {
			return err
		}
	}

	return nil
}

func (t *turnover) cluster(ctx context.Context, name string) error {
	if _, err := t.world.NewCluster(ctx, namespace, name); err != nil {
		return err
	}

	return t.world.Admin.Create(ctx, scale.ClusterConfig(namespace, name))
}

// come creates a machine of any cluster that is there.
func (t *turnover) come(ctx context.Context, i int) error {
	cluster := fmt.Sprintf("c%d", t.random.IntN(i/(machines/clusters)+1))
	name := fmt.Sprintf("%s-m%d", cluster, i)

	if len(t.gone) > 0 && t.random.IntN(3) == 0 {
		again := t.gone[t.random.IntN(len(t.gone))]

		// Its Secret may still be there; its TalosConfig may not, which has the name that the new one needs.
		err := t.world.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: again}, &bootstrapv1.TalosConfig{})
		if apierrors.IsNotFound(err) {
			name, cluster = again, again[:2]
			t.gone = without(t.gone, again)
		}
	}

	t.alive = append(t.alive, name)

	return t.world.AddMachine(ctx, namespace, cluster, name, t.random.IntN(controlPlanes) == 0)
}

// goAway deletes a machine, whatever has been done for it so far.
func (t *turnover) goAway(ctx context.Context) error {
	name := t.alive[t.random.IntN(len(t.alive))]
	t.alive, t.gone = without(t.alive, name), append(t.gone, name)

	return t.world.Admin.Delete(ctx, &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
}

func without(names []string, name string) []string {
	var left []string

	for _, each := range names {
		if each != name {
			left = append(left, each)
		}
	}

	return left
}
