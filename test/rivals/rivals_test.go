// SPDX-License-Identifier: Apache-2.0

package rivals_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/bootstrap/setup"
	"github.com/maesh-dev/ichor/test/scale"
)

var (
	turmoil = flag.Duration("turmoil", time.Minute, "how long the managers are killed and machines come and go")
	seeds   = flag.Int("seeds", 1, "how many rounds, each with a seed of its own")
	seed    = flag.Uint64("seed", 0, "seed of the first round, to do again what failed (default: from the clock)")
)

const (
	namespace = "rivals"

	// clusters appear one after the other, so that there are secrets to make all the time.
	clusters = 5

	// machines is how many come in a round. About half of them go again.
	machines = 200

	// patience bounds the wait for the end state.
	patience = 3 * time.Minute
)

// Two managers without leader election are killed at random, each at any moment of its life, while machines of several clusters come and
// go. In the end every Machine has one data Secret, which fits the secrets of its cluster and has been the same since Cluster API
// handed it over; no TalosConfig that is there was ever given two, and each cluster's secrets were made once; and nothing of a deleted Machine is left.
func TestManagersKilledAtRandom(t *testing.T) {
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}

	for i := range *seeds {
		round := first + uint64(i)
		t.Run(fmt.Sprintf("seed %d", round), func(t *testing.T) { fight(t, round) })
	}
}

func fight(t *testing.T, seed uint64) {
	g := NewWithT(t)

	world, err := scale.Start(t.Context(), scale.Options{GarbageCollector: true})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(world.Stop()).To(Succeed()) })

	g.Expect(world.Admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())

	watching, err := client.NewWithWatch(world.Config(), client.Options{Scheme: setup.NewScheme()})
	g.Expect(err).NotTo(HaveOccurred())

	history, err := recordSecrets(t.Context(), watching)
	g.Expect(err).NotTo(HaveOccurred())

	core := newCoreStandIn(world.Admin)
	kills := disturb(t, world, core, seed)
	made := history.versions()

	survivor, err := world.StartManager(t.Context(), "survivor")
	g.Expect(err).NotTo(HaveOccurred())

	end := &endState{world: world, core: core, history: history}
	g.Eventually(func() error { return end.reached(t.Context()) }, patience, 200*time.Millisecond).Should(Succeed())
	g.Expect(survivor.Stop()).To(Succeed())

	left, err := end.check(t.Context())
	if err != nil {
		t.Error(err)
	}

	t.Logf("%d kills, %d Machines came, %d are left, %d versions of Secrets seen, %d of them before the kills ended",
		kills, machines, left, history.versions(), made)

	// A round in which nothing happened proves nothing: each of the two lives as long as it may at most, and some of the work is theirs.
	g.Expect(kills).To(BeNumerically(">=", int(*turmoil/longestLife)))
	g.Expect(made).To(BeNumerically(">", 0))
	g.Expect(left).To(And(BeNumerically(">", machines/4), BeNumerically("<", machines)))
}

// disturb runs everything that happens in a round, until its end, and returns how often a manager was killed.
func disturb(t *testing.T, world *scale.World, core *coreStandIn, seed uint64) int {
	t.Helper()

	g := NewWithT(t)

	ctx, cancel := context.WithTimeout(t.Context(), patience+*turmoil)
	defer cancel()

	random := func(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) } //nolint:gosec // not for secrets

	var (
		ended       = time.After(*turmoil)
		over        = make(chan struct{})
		faults      = make(chan error)
		activities  = 4
		rivalKills  [2]int
		run         = func(do func() error) { go func() { faults <- do() }() }
		happenings  = &turnover{world: world, random: random(0), every: *turmoil / machines}
		handingOver = func() error { return core.run(ctx, over) }
	)

	for i := range rivalKills {
		r := &rival{world: world, name: fmt.Sprintf("rival-%d", i), random: random(uint64(i + 1))}
		run(func() error {
			var err error
			rivalKills[i], err = r.run(ctx, over)

			return err
		})
	}

	run(func() error { return happenings.run(ctx) })
	run(handingOver)

	var fault error

	for activities > 0 {
		select {
		case <-ended:
			close(over)
		case err := <-faults:
			activities--
			fault = errors.Join(fault, err)
		}
	}

	g.Expect(fault).NotTo(HaveOccurred())

	return rivalKills[0] + rivalKills[1]
}
