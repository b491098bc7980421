// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/test/talossim"
)

const (
	lifeNamespace = "ns"
	lifeCluster   = "prod"
	lifePlane     = "cp"
)

var lifeKey = client.ObjectKey{Namespace: lifeNamespace, Name: lifePlane}

// life is that of one control plane, from nothing on. Real are the reconciler and everything below it, Talos' API and its certificates, and the
// simulated nodes, of light fidelity: etcd is a model there. The clock is a fake, the API server controller-runtime's fake (see store). The part
// of Cluster API, of the bootstrap provider and of the infrastructure provider is played in core.
//
// Everything that happens is drawn from a seed. Where the control plane writes, reads live, or is about to, is a step; at each something may
// happen to it, see happen.
type life struct {
	t     *testing.T
	ctx   context.Context //nolint:containedctx // That of the test.
	rng   *rand.Rand
	clock *clocktesting.FakeClock
	uids  int

	// store is the management cluster of now, and kept what a backup of it had.
	store *store
	kept  []client.Object

	processes []*process
	started   int

	// nodes are the machines that there have been, by the name of their Machine: it is the same machine in every management cluster.
	sim   *talossim.World
	nodes map[string]*talossim.Node

	// secrets are of the cluster, made once for all lives.
	secrets  *lifeSecrets
	endpoint clusterv1.APIEndpoint
	// serves is true while the Kubernetes API server answers, alive while one does that none of the nodes runs.
	serves, alive atomic.Bool

	// storm is true while things happen.
	storm  bool
	inside bool
	steps  int

	// killAt kills the first process at one step, if it is set, and nothing else happens. killAfter has the step done before.
	killAt    int
	killAfter bool

	told []string
}

func newLife(t *testing.T, seed uint64, secrets *lifeSecrets, replicas int32) *life {
	t.Helper()

	l := &life{
		t: t, ctx: t.Context(), rng: rand.New(rand.NewPCG(seed, 11)), clock: clocktesting.NewFakeClock(time.Now()), secrets: secrets,
		nodes: map[string]*talossim.Node{}, storm: true,
	}

	var err error
	if l.sim, err = talossim.New(talossim.Options{}); err != nil {
		t.Fatal(err)
	}

	l.serve()
	l.store = newStore(l.clock, &l.uids)
	l.create(lifeObjects(l.endpoint, replicas)...)
	l.start()

	return l
}

func (l *life) end() {
	for _, p := range l.processes {
		p.kill()
	}

	if err := l.sim.Close(); err != nil {
		l.t.Errorf("close the simulated nodes: %v", err)
	}
}

// serve plays the Kubernetes API server of the cluster: all that is asked of it is whether it is ready.
func (l *life) serve() {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !l.serves.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{l.secrets.serving}, MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			// Before etcd is there, nothing of the cluster answers.
			if !l.serves.Load() && !l.alive.Load() {
				return nil, errors.New("nobody is there")
			}

			return nil, nil
		},
	}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	l.t.Cleanup(server.Close)

	address, ok := server.Listener.Addr().(*net.TCPAddr)
	if !ok {
		l.t.Fatalf("the server listens on %s", server.Listener.Addr())
	}

	l.endpoint = clusterv1.APIEndpoint{Host: "127.0.0.1", Port: int32(address.Port)}
}

func (l *life) must(err error) {
	l.t.Helper()

	if err != nil {
		l.t.Fatalf("%v\n%s", err, l)
	}
}

func (l *life) create(objects ...client.Object) {
	l.t.Helper()

	for _, object := range objects {
		l.must(l.store.Create(l.ctx, object))
	}
}

// say notes what happened, for the message of a failure. What is said again and again is there once.
func (l *life) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if n := len(l.told); n == 0 || l.told[n-1] != text {
		l.told = append(l.told, text)
	}
}

func (l *life) String() string { return strings.Join(l.told, "\n") + "\n" + l.sim.Transcript() }

// start starts a manager, with an empty memory and a cache of everything that there is.
func (l *life) start() *process {
	l.started++

	p := newProcess(l, l.store, "manager "+strconv.Itoa(l.started))
	l.processes = append(l.processes, p)

	return p
}

// round lets everybody do something, once.
func (l *life) round() {
	l.core()

	pause := l.clock.Now().Add(pollPeriod)

	for _, p := range slices.Clone(l.processes) {
		if p.dead || p.store != l.store {
			continue
		}

		if next := l.clock.Now().Add(p.reconcile()); next.Before(pause) {
			pause = next
		}
	}

	l.processes = slices.DeleteFunc(l.processes, func(p *process) bool { return p.dead || p.store != l.store })
	if len(l.processes) == 0 {
		l.start()
	}

	l.clock.Step(max(pause.Sub(l.clock.Now()), time.Second))
	l.once()
}

// once is the invariant: of all nodes that there have ever been, one has made an etcd cluster, once.
func (l *life) once() int {
	l.t.Helper()

	made := l.sim.Bootstraps()
	if made > 1 {
		l.t.Fatalf("etcd was bootstrapped %d times\n%s", made, l)
	}

	return made
}

func (l *life) controlPlane() *controlplanev1.TalosControlPlane {
	l.t.Helper()

	tcp := &controlplanev1.TalosControlPlane{}
	l.must(l.store.Get(l.ctx, lifeKey, tcp))

	return tcp
}

func (l *life) machines() []clusterv1.Machine {
	l.t.Helper()

	list := &clusterv1.MachineList{}
	l.must(l.store.List(l.ctx, list, client.InNamespace(lifeNamespace)))

	return list.Items
}
