// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
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
	// serves is true while the Kubernetes API server answers.
	serves atomic.Bool

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
	server.TLS = &tls.Config{Certificates: []tls.Certificate{l.secrets.serving}, MinVersion: tls.VersionTLS12}
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

// happen is what may come between two things that the control plane does.
func (l *life) happen(p *process, what string, done bool) {
	if !done {
		l.steps++
	}

	if l.killAt > 0 {
		if l.steps == l.killAt && done == l.killAfter && !p.dead {
			l.killAt = -1
			l.say("    %s is killed at step %d, %s: done %t", p.name, l.steps, what, done)
			p.kill()
		}

		return
	}

	if !l.storm || l.killAt < 0 || l.inside {
		return
	}

	l.inside = true
	defer func() { l.inside = false }()

	l.draw(p, what, done)
	l.once()
}

// draw has something happen, or nothing.
func (l *life) draw(p *process, what string, done bool) {
	switch l.rng.IntN(30) {
	case 0, 1, 2:
		l.say("    %s is killed at %s, done: %t", p.name, what, done)
		p.kill()
	case 3, 4, 5:
		l.reach()
	case 6:
		l.trap()
	case 7, 8:
		l.another(p)
	case 9:
		if l.rng.IntN(3) == 0 {
			l.elsewhere(p)
		}
	case 10:
		l.backUp()
	case 11:
		if l.rng.IntN(4) == 0 {
			l.userDeletes()
		}
	case 12:
		l.core()
	}
}

// anyNode is a machine that there is, or nil.
func (l *life) anyNode() *talossim.Node {
	if len(l.nodes) == 0 {
		return nil
	}

	names := make([]string, 0, len(l.nodes))
	for name := range l.nodes {
		names = append(names, name)
	}

	slices.Sort(names)

	return l.nodes[names[l.rng.IntN(len(names))]]
}

// reach takes a node out of reach, or brings it back.
func (l *life) reach() {
	if node := l.anyNode(); node != nil {
		faults := node.Faults()
		faults.Unreachable = !faults.Unreachable
		node.SetFaults(faults)
		l.say("    a node is out of reach: %t", faults.Unreachable)
	}
}

// trap has a node lose power with the next Bootstrap, before it does anything or before anybody hears of it, or has it answer that it is not
// ready.
func (l *life) trap() {
	node := l.anyNode()
	if node == nil {
		return
	}

	switch l.rng.IntN(3) {
	case 0:
		node.CrashBefore("Bootstrap")
	case 1:
		node.CrashAfter("Bootstrap")
	default:
		faults := node.Faults()
		faults.TimeUnsynced = !faults.TimeUnsynced
		node.SetFaults(faults)
	}
}

// another has a second manager reconcile in the middle of what the first one does.
func (l *life) another(p *process) {
	if p.store != l.store {
		return
	}

	at := slices.IndexFunc(l.processes, func(other *process) bool { return other != p && !other.dead && other.store == l.store })
	if at < 0 {
		l.start()

		at = len(l.processes) - 1
	}

	l.say("    meanwhile:")
	l.processes[at].reconcile()
}

// backUp keeps what there is.
func (l *life) backUp() {
	var err error

	l.kept, err = l.store.objects(l.ctx)
	l.must(err)
}

// elsewhere restores everything in another management cluster: what is there now, or a backup that has the same Machines. The managers of the
// old one end, or end when they have done what they are doing.
func (l *life) elsewhere(p *process) {
	now, err := l.store.objects(l.ctx)
	l.must(err)

	objects := now
	if l.kept != nil && slices.Equal(machineNames(l.kept), machineNames(now)) && l.rng.IntN(2) == 0 {
		objects = l.kept
	}

	l.store, l.kept = newStore(l.clock, &l.uids), nil
	l.must(l.store.restore(l.ctx, objects))

	goesOn := l.rng.IntN(2) == 0
	l.say("    everything is restored elsewhere without status, and %s goes on: %t", p.name, goesOn)

	for _, other := range l.processes {
		if other != p || !goesOn {
			other.kill()
		}
	}

	l.start()
}

func machineNames(objects []client.Object) []string {
	var names []string

	for _, object := range objects {
		if machine, ok := object.(*clusterv1.Machine); ok && machine.DeletionTimestamp.IsZero() {
			names = append(names, machine.Name)
		}
	}

	slices.Sort(names)

	return names
}

// userDeletes is kubectl delete machine.
func (l *life) userDeletes() {
	machines := l.machines()
	if len(machines) == 0 {
		return
	}

	machine := &machines[l.rng.IntN(len(machines))]
	l.say("    a user deletes a Machine")
	l.must(client.IgnoreNotFound(l.store.Delete(l.ctx, machine)))
}

// calm ends what people and networks can end.
func (l *life) calm() {
	l.say("everything is mended that can be")

	l.storm = false

	for _, node := range l.nodes {
		node.SetFaults(talossim.Faults{})
		l.must(node.PowerOn(l.ctx))
	}

	// One manager is left, as with leader election.
	for _, p := range l.processes[min(1, len(l.processes)):] {
		p.kill()
	}
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
