// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"cmp"
	"flag"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/rollout"
)

var (
	lives   = flag.Uint64("lives", 0, "how many lives of a control plane to draw; by default 100, and 15 with the race detector")
	oneLife = flag.Uint64("life", 0, "draw only this one, and print what happens")

	defaultLives  uint64 = 100
	defaultStride        = 2
)

const (
	// stormRounds are how many rounds things happen in.
	stormRounds = 15

	// lifeBound is how long, of real time, a control plane may take to come up when nothing more happens. A machine that has too much to do
	// is no fault of a control plane.
	lifeBound = 2 * time.Minute
)

// TestBootstrapOnce draws lives of a control plane that comes up from nothing: managers are killed before and after anything that they write, a
// second one runs at the same time, caches are behind, nodes are out of reach and lose power in the middle of Bootstrap, users delete the first
// machine, everything is restored in another management cluster without status. Etcd is bootstrapped at most once in each. In the end the
// control plane is up, and etcd was bootstrapped once; or the machine is gone on which that was to be done, and the user is asked.
func TestBootstrapOnce(t *testing.T) {
	ctrl.SetLogger(logr.Discard())

	made := newLifeSecrets(t)

	if *oneLife != 0 {
		l := live(t, *oneLife, made)
		t.Log(l)

		return
	}

	count := cmp.Or(*lives, defaultLives)

	var (
		group  sync.WaitGroup
		mu     sync.Mutex
		ends   = map[string]int{}
		shards = uint64(runtime.GOMAXPROCS(0))
	)

	for shard := range shards {
		group.Go(func() {
			for seed := shard + 1; seed <= count && !t.Failed(); seed += shards {
				t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
					l := live(t, seed, made)

					mu.Lock()
					defer mu.Unlock()

					ends[l.controlPlane().Status.Plan.Reason]++
				})
			}
		})
	}

	group.Wait()
	t.Log(ends)

	if asked := ends[controlplanev1.PlanBootstrapMachineGoneReason]; uint64(asked)*5 > count {
		t.Errorf("%d of %d lives end with a question to the user", asked, count)
	}
}

// live lives one life to its end.
func live(t *testing.T, seed uint64, made *lifeSecrets) *life {
	t.Helper()

	replicas := int32(1)
	if seed%10 == 0 {
		replicas = 3
	}

	l := newLife(t, seed, made, replicas)
	defer l.end()
	defer func() {
		if t.Failed() {
			t.Logf("-life %d", seed)
		}
	}()

	for n := 0; n < stormRounds; n++ {
		l.round()

		// What is left when etcd is there for good is the same each time.
		if l.recorded().Done {
			n += stormRounds / 5
		}
	}

	l.calm()

	// That etcd is there for good is enough in most lives: what comes after it has tests of its own.
	l.finish(replicas, seed%4 > 0 && replicas == 1)

	return l
}

// finish lets the control plane come up, or until etcd is there for good.
func (l *life) finish(replicas int32, early bool) {
	l.t.Helper()

	asked := 0

	for bound := time.Now().Add(lifeBound); ; {
		l.round()

		switch plan := l.controlPlane().Status.Plan; {
		case early && l.recorded().Done:
			l.made()

			return
		case plan.Reason == controlplanev1.PlanUpToDateReason:
			l.up(replicas)

			return
		case plan.Reason == controlplanev1.PlanBootstrapMachineGoneReason:
			if asked++; asked == 20 {
				l.asks(plan.Message)

				return
			}
		case time.Now().After(bound):
			l.t.Fatalf("the control plane does not come up\n%s", l)
		default:
			asked = 0
		}
	}
}

// up is what must be so when the control plane is up.
func (l *life) up(replicas int32) {
	l.t.Helper()

	l.made()

	if machines := l.machines(); len(machines) != int(replicas) {
		l.t.Errorf("%d machines are there, and replicas is %d\n%s", len(machines), replicas, l)
	}

	if record := l.recorded(); !record.Done {
		l.t.Errorf("the record is %v\n%s", record, l)
	}
}

// made checks that etcd was bootstrapped.
func (l *life) made() {
	l.t.Helper()

	if made := l.once(); made != 1 {
		l.t.Errorf("etcd was bootstrapped %d times\n%s", made, l)
	}
}

// recorded is the record of the bootstrap on the control plane.
func (l *life) recorded() rollout.BootstrapRecord {
	l.t.Helper()

	value, set := l.controlPlane().Annotations[controlplanev1.BootstrapAnnotation]

	return rollout.ParseBootstrapMark(value, set).Record
}

// asks is what must be so when the user is asked: the machine of the record is gone, and the message names it.
func (l *life) asks(message string) {
	l.t.Helper()

	record := l.recorded()

	for _, machine := range l.machines() {
		if machine.Name == record.Machine {
			l.t.Errorf("Machine %s is there, and the user is asked\n%s", machine.Name, l)
		}
	}

	if !strings.Contains(message, record.Machine) || !strings.Contains(message, controlplanev1.BootstrapAnnotation) {
		l.t.Errorf("the user is told: %s\n%s", message, l)
	}
}
