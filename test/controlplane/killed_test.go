// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/rollout"
	"github.com/maesh-dev/ichor/internal/secrets"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
)

// strides is how many runs there are: each kills the manager at every fifth step of a kind, and begins with another one, so that together they
// kill it at every step. Kinds are counted by themselves: a manager that was killed at every fifth of all steps might never get further than those.
const strides = 5

// sweeps is how many of them see what was begun and not ended go. The first is killed before it has made the first of anything, the second after
// it has made the second.
const sweeps = 2

// A control plane comes up with three machines, and its manager is killed again and again: before a step, or after it and before the manager
// hears of it. A step is a write to the management cluster, or the last look before Bootstrap. In the end everything is as if nothing had
// happened, and etcd was bootstrapped once. A killed manager is one of which no request gets through any more, and which is then stopped: it
// runs in this process.
func TestKilled(t *testing.T) {
	onlyLong(t)

	// Not in parallel: other scenarios need the manager.
	killed := map[string]int{}

	for run := range strides {
		t.Run(fmt.Sprintf("from the %d. step of a kind on", run+1), func(t *testing.T) {
			s := newScenario(t)

			s.Expect(s.StopControlPlane()).To(Succeed())

			// Whatever comes of it, the next scenario finds a manager.
			t.Cleanup(func() {
				NewWithT(t).Expect(s.StopControlPlane()).To(Succeed())
				NewWithT(t).Expect(s.StartControlPlane(context.Background(), nil)).To(Succeed())
			})

			k := &killer{run: run, counts: map[string]int{}, killed: killed}
			s.Expect(s.StartControlPlane(s.ctx, k.revive())).To(Succeed())
			s.Create(clusterOf(infrav1.FidelityFull, 3))

			for begin := time.Now(); !s.isUp(3); {
				select {
				case <-k.dead:
					s.restart(k)
				case <-time.After(250 * time.Millisecond):
				}

				s.Expect(time.Since(begin)).To(BeNumerically("<", 3*patience), "plan: %+v", s.controlPlane().Status.Plan)
				s.Expect(s.Bootstraps()).To(BeNumerically("<=", 1))
			}

			k.pardon()

			select {
			case <-k.dead: // by what it did last
				s.restart(k)
			default:
			}

			s.settled(3)
			s.recorded()

			// What is left of a machine that was not made is swept two minutes later; to wait for that twice is enough.
			if run < sweeps {
				s.tidy(3)
			}

			t.Logf("killed %d times", k.times)
			s.deleteCluster()
		})
	}

	if t.Failed() {
		return
	}

	g := NewWithT(t)

	for _, step := range []string{
		"look at taloscontrolplanes", "patch machines", "patch machines/status", "patch secrets", "patch simmachines", "patch taloscontrolplanes",
		"patch taloscontrolplanes/status", "patch talosconfigs", "post secrets",
	} {
		g.Expect(slices.Collect(maps.Keys(killed))).To(ContainElement(HavePrefix(step+",")), "where it was killed")
	}

	for _, step := range slices.Sorted(maps.Keys(killed)) {
		t.Logf("%3d %s", killed[step], step)
	}
}

// restart puts another manager in the place of a killed one, of which nobody asks how it ends.
func (s *scenario) restart(k *killer) {
	s.t.Helper()

	if err := s.StopControlPlane(); err != nil {
		s.t.Logf("the manager that was killed: %v", err)
	}

	s.Expect(s.StartControlPlane(s.ctx, k.revive())).To(Succeed())
}

// isUp says whether the control plane has come up, as its last manager has it.
func (s *scenario) isUp(replicas int32) bool {
	tcp := s.controlPlane()
	up := tcp.Status.AvailableReplicas

	return tcp.Status.Plan.Reason == controlplanev1.PlanUpToDateReason && up != nil && *up == replicas
}

// tidy waits until nothing is left of what was begun and not ended, and the machines have what keeps them.
func (s *scenario) tidy(replicas int) {
	s.t.Helper()

	s.Eventually(func(g Gomega) {
		for _, list := range []client.ObjectList{&bootstrapv1.TalosConfigList{}, &infrav1.SimMachineList{}} {
			g.Expect(s.Client.List(s.ctx, list, client.InNamespace(s.namespace))).To(Succeed())
			g.Expect(list).To(HaveField("Items", HaveLen(replicas)))
		}

		for _, machine := range s.machineList() {
			g.Expect(machine.Annotations).To(HaveKey(controlplanev1.EtcdMembersAnnotation))
			g.Expect(machine.Annotations).To(HaveKey(controlplanev1.PreTerminateHookAnnotation))
		}
	}).Should(Succeed())
}

// recorded waits until it is noted down in both places that etcd was bootstrapped.
func (s *scenario) recorded() {
	s.t.Helper()

	s.Eventually(func(g Gomega) {
		bundle := &corev1.Secret{}
		g.Expect(s.Client.Get(s.ctx, s.key(secrets.BundleName("c")), bundle)).To(Succeed())

		for _, object := range []client.Object{bundle, s.controlPlane()} {
			value, set := object.GetAnnotations()[controlplanev1.BootstrapAnnotation]
			g.Expect(rollout.ParseBootstrapMark(value, set).Record.Done).To(BeTrue(), "%T: %s", object, value)
		}
	}).Should(Succeed())
}

// killer is between the control-plane manager and the API server.
type killer struct {
	mu sync.Mutex

	// run is which one it is; counts are of the steps of all its managers, by kind, and times is how often one was killed.
	run    int
	counts map[string]int
	times  int

	// dead is closed when the manager is killed; pardoned when none is killed any more.
	dead     chan struct{}
	pardoned bool

	// killed counts where one was killed.
	killed map[string]int
}

var errKilled = errors.New("the manager was killed")

// revive is for a new manager.
func (k *killer) revive() func(http.RoundTripper) http.RoundTripper {
	k.mu.Lock()
	defer k.mu.Unlock()

	dead := make(chan struct{})
	k.dead = dead

	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) { return k.pass(dead, next, request) })
	}
}

// pardon lets the manager live.
func (k *killer) pardon() {
	k.mu.Lock()
	defer k.mu.Unlock()

	k.pardoned = true
}

func (k *killer) pass(dead chan struct{}, next http.RoundTripper, request *http.Request) (*http.Response, error) {
	select {
	case <-dead:
		return nil, errKilled
	default:
	}

	step, after := k.step(dead, request)
	if step != "" && !after {
		return nil, errKilled
	}

	response, err := next.RoundTrip(request)
	if step != "" && err == nil {
		k.mu.Lock()
		kill(dead)
		k.mu.Unlock()

		return nil, errors.Join(errKilled, response.Body.Close())
	}

	return response, err
}

// step says at which step the manager is killed with this request, if it is, and whether after it. It is dead then, or about to be.
func (k *killer) step(dead chan struct{}, request *http.Request) (step string, after bool) {
	if step = stepOf(request); step == "" {
		return "", false
	}

	k.mu.Lock()
	defer k.mu.Unlock()

	before := k.counts[step]
	k.counts[step]++

	if k.pardoned || before%strides != k.run {
		return "", false
	}

	k.times++
	after = (before/strides+k.run)%2 == 1

	if !after {
		kill(dead)
	}

	k.killed[fmt.Sprintf("%s, done: %t", step, after)]++

	return step, after
}

// kill closes the channel, once. The caller holds the lock.
func kill(dead chan struct{}) {
	select {
	case <-dead:
	default:
		close(dead)
	}
}

// stepOf names a step by verb and resource; it is empty for what changes nothing. Events tell of steps. Nobody but who is about to bootstrap
// etcd reads a single TalosControlPlane.
func stepOf(request *http.Request) string {
	_, path, namespaced := strings.Cut(request.URL.Path, "/namespaces/")
	parts := strings.Split(path, "/")

	if !namespaced || len(parts) < 2 {
		return ""
	}

	resource := parts[1]
	if len(parts) > 3 {
		resource += "/" + parts[3]
	}

	switch {
	case resource == "events":
		return ""
	case request.Method != http.MethodGet:
		return strings.ToLower(request.Method) + " " + resource
	case resource == "taloscontrolplanes" && len(parts) == 3:
		return "look at " + resource
	default:
		return ""
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
