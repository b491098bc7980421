// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/test/builder"
	"github.com/maesh-dev/ichor/test/invariants"
	"github.com/maesh-dev/ichor/test/stage"
	"github.com/maesh-dev/ichor/test/talossim"
)

const (
	// Cluster is the name of the Cluster that a scenario is about.
	Cluster = "c"

	// patience bounds every wait for something that must happen.
	patience = 4 * time.Minute
	interval = 100 * time.Millisecond

	// quiet is how long nothing may be written before a state is steady. A manager that repeats a write does so at once, or as its
	// limit allows, once a second.
	quiet = 3 * time.Second
)

// Scenario is one test on a suite's stage, in a namespace of its own.
type Scenario struct {
	*WithT
	*Suite

	// Ctx is the test's.
	Ctx context.Context //nolint:containedctx // A scenario is a test's, and so is its context.

	// Namespace of everything.
	Namespace string

	// Watch looks at the scenario's Cluster.
	Watch *invariants.Watch

	t *testing.T

	mu    sync.Mutex
	world *talossim.World
	steps []step
	// place is where in the scenario the test is: what fails says so.
	place string
}

// New begins a scenario. Its waits are bounded, and it is watched until the test ends.
func (s *Suite) New(t *testing.T) *Scenario {
	t.Helper()

	c := &Scenario{Suite: s, Ctx: t.Context(), t: t}
	c.WithT = c.telling(t)

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "scenario-"}}
	c.Expect(s.Client.Create(c.Ctx, namespace)).To(Succeed())
	c.Namespace = namespace.Name

	c.Watch = invariants.Start(c.Ctx, invariants.Options{
		Client: s.watching, Namespace: c.Namespace, Nodes: c.nodes, Transcript: c.transcript, Bootstraps: c.Bootstraps,
		AuditLogs: c.auditLogs, Search: s.search,
	})
	t.Cleanup(c.Watch.Stop)

	return c
}

// For is the scenario for another test: a part of the one that it is for, which then fails by itself.
func (s *Scenario) For(t *testing.T) *Scenario {
	t.Helper()

	part := &Scenario{Suite: s.Suite, Ctx: s.Ctx, Namespace: s.Namespace, Watch: s.Watch, t: t, place: s.place}
	part.WithT = part.telling(t)

	return part
}

// At is the scenario in another management cluster, whose machines are the same.
func (s *Scenario) At(other *stage.Stage) *Scenario {
	there := s.For(s.t)
	there.Suite = &Suite{Stage: other, Managers: s.Managers}

	return there
}

// Key is the name of an object of the scenario.
func (s *Scenario) Key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: s.Namespace, Name: name}
}

// World is the network of the Cluster's machines, or nil before there are some. It is there to be looked at when they are gone.
func (s *Scenario) World() *talossim.World {
	s.mu.Lock()
	defer s.mu.Unlock()

	if now := s.Farm.World(s.Key(Cluster)); now != nil {
		s.world = now
	}

	return s.world
}

func (s *Scenario) nodes() []*talossim.Node {
	if world := s.World(); world != nil {
		return world.Nodes()
	}

	return nil
}

func (s *Scenario) auditLogs() ([]string, error) {
	if world := s.World(); world != nil {
		return world.AuditLogs()
	}

	return nil, nil
}

// Bootstraps is how many etcd clusters the machines of the Cluster have made.
func (s *Scenario) Bootstraps() int {
	if world := s.World(); world != nil {
		return world.Bootstraps()
	}

	return 0
}

func (s *Scenario) transcript() string {
	if world := s.World(); world != nil {
		return world.Transcript()
	}

	return ""
}

// Create creates the objects of builders in the scenario's namespace.
func (s *Scenario) Create(builders ...builder.Builder) {
	s.t.Helper()

	for _, object := range builder.Objects(builders...) {
		object.SetNamespace(s.Namespace)
		s.Expect(s.Client.Create(s.Ctx, object)).To(Succeed(), "%T %s", object, object.GetName())
	}
}

// Patch reads an object, changes it and writes the difference, as kubectl does.
func (s *Scenario) Patch(object client.Object, name string, change func()) {
	s.t.Helper()
	s.Expect(s.Client.Get(s.Ctx, s.Key(name), object)).To(Succeed())

	before, ok := object.DeepCopyObject().(client.Object)
	s.Expect(ok).To(BeTrue())
	change()
	s.Expect(s.Client.Patch(s.Ctx, object, client.MergeFrom(before))).To(Succeed())
}

// Delete deletes an object, and waits until it is gone.
func (s *Scenario) Delete(object client.Object, name string) {
	s.t.Helper()
	object.SetNamespace(s.Namespace)
	object.SetName(name)
	s.Expect(s.Client.Delete(s.Ctx, object)).To(Succeed())
	s.Gone(object, name)
}

// Gone waits until an object is not there.
func (s *Scenario) Gone(object client.Object, name string) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		err := s.Client.Get(s.Ctx, s.Key(name), object)
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())
		g.Expect(err).To(HaveOccurred(), "%T %s is there: %s", object, name, Describe(object))
	}).Should(Succeed())
}
