// SPDX-License-Identifier: Apache-2.0

package longhornsim_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/longhornsim"
	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
	"github.com/maesh-dev/ichor/test/longhornsim/model"
)

// wait bounds every wait of these tests; it is never reached by a test that passes.
const wait = 5 * time.Minute

// claimsAtOnce is how many claims are tried at a time. Each waits for the API server most of the time.
const claimsAtOnce = 12

// claim is something that Longhorn does, with the source that says so.
type claim struct {
	// says is the claim, source where it comes from: Longhorn's source, its documentation, or one of its issues. A claim that
	// nobody has found a source for has unsourced instead, which says what was assumed and why.
	says, source, unsourced string

	// nodes are those of the cluster. Default: a, b, c and d with what Longhorn gives them.
	nodes func(s *subject) []*longhornsim.NodeBuilder
	// settings are changed before there are volumes; harmful are what Violations may say.
	settings map[string]string
	// loses is whether volumes are without a readable copy on the way, as the claim wants it.
	loses bool

	check func(s *subject)
}

// subject is the Longhorn that a claim is tried on.
type subject struct {
	*WithT
	*longhornsim.Sim

	ctx        context.Context
	clock      *testclock.FakeClock
	a, b, c, d string
}

var (
	shared *harness.ManagementCluster
	count  atomic.Int64
)

func TestMain(m *testing.M) {
	logger := klog.Background().V(9)
	ctrl.SetLogger(logger)

	crds, err := longhornsim.CRDs()
	if err == nil {
		err = harness.Parallel(claimsAtOnce)
	}

	if err == nil {
		shared, err = harness.StartManagementCluster(context.Background(), harness.Options{CRDs: crds, ControllerManager: true})
	}

	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}

	code := m.Run()

	if err := shared.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)

		code = 1
	}

	os.Exit(code)
}

// newSubject starts a Longhorn of its own, in a namespace and on nodes of its own.
func newSubject(t *testing.T, c claim) *subject {
	t.Helper()

	id := fmt.Sprintf("t%d", count.Add(1))
	s := &subject{
		WithT: NewWithT(t), clock: testclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		a: id + "-a", b: id + "-b", c: id + "-c", d: id + "-d",
	}

	ctx, cancel := context.WithTimeout(t.Context(), wait)
	t.Cleanup(cancel)
	s.ctx = ctx

	var err error
	s.Sim, err = longhornsim.Start(ctx, longhornsim.Options{
		Config: shared.Config(), Namespace: "longhorn-" + id, NodeLabels: map[string]string{"test": id},
		Clock: s.clock, Manual: true, Workloads: true,
	})
	s.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		s.Expect(s.Stop()).To(Succeed())
		// Every Longhorn of the cluster reads all pods.
		s.Expect(s.Client().DeleteAllOf(context.WithoutCancel(ctx), &corev1.Pod{}, client.InNamespace(s.Namespace()), client.GracePeriodSeconds(0))).To(Succeed())
	})

	for _, name := range slices.Sorted(maps.Keys(c.settings)) {
		s.Expect(s.SetSetting(ctx, name, c.settings[name])).To(Succeed())
	}

	nodes := c.nodes
	if nodes == nil {
		nodes = func(s *subject) []*longhornsim.NodeBuilder {
			return []*longhornsim.NodeBuilder{
				longhornsim.NewNode(s.a), longhornsim.NewNode(s.b), longhornsim.NewNode(s.c), longhornsim.NewNode(s.d),
			}
		}
	}

	s.Expect(s.AddNodes(ctx, nodes(s)...)).To(Succeed())

	return s
}

// conformance is the table: rules by what they are about.
var conformance = map[string][]claim{
	"nodes":     nodeClaims,
	"admission": admissionClaims,
	"schedule":  scheduleClaims,
	"volumes":   volumeClaims,
	"rebuild":   rebuildClaims,
	"eviction":  evictionClaims,
	"budgets":   budgetClaims,
	"others":    otherClaims,
}

func TestConformance(t *testing.T) {
	for about, claims := range conformance {
		for _, c := range claims {
			t.Run(about+"/"+strings.ReplaceAll(c.says, " ", "_"), func(t *testing.T) {
				t.Parallel()

				if (c.source == "") == (c.unsourced == "") {
					t.Fatal("a claim has a source, or says what was assumed")
				}

				s := newSubject(t, c)
				c.check(s)

				for _, violation := range s.Violations() {
					if !c.loses || strings.Contains(violation, "inconsistent") {
						t.Error(violation)
					}
				}
			})
		}
	}
}

func (s *subject) create(volumes ...*longhornsim.VolumeBuilder) {
	s.Expect(s.Create(s.ctx, volumes...)).To(Succeed())
}

func (s *subject) settle() { s.Expect(s.Settle(s.ctx)).To(Succeed()) }

func (s *subject) advance(d time.Duration) { s.Expect(s.Advance(s.ctx, d)).To(Succeed()) }

// faults sets what is wrong.
func (s *subject) faults(change func(*model.Faults)) {
	s.Expect(s.SetFaults(s.ctx, change)).To(Succeed())
}

func (s *subject) get(name string, object client.Object) {
	s.Expect(s.Client().Get(s.ctx, client.ObjectKey{Namespace: s.Namespace(), Name: name}, object)).To(Succeed())
}

func (s *subject) volume(name string) *lh.Volume {
	v := &lh.Volume{}
	s.get(name, v)

	return v
}

func (s *subject) engine(volume string) *lh.Engine {
	e := &lh.Engine{}
	s.get(volume+"-e-0", e)

	return e
}

func (s *subject) node(name string) *lh.Node {
	n := &lh.Node{}
	s.get(name, n)

	return n
}

func (s *subject) manager(node string) *lh.InstanceManager {
	im := &lh.InstanceManager{}
	s.get(model.InstanceManagerName(node, lh.DataEngineV1), im)

	return im
}

// replicas of a volume in the order of their nodes.
func (s *subject) replicas(volume string) []lh.Replica {
	var list lh.ReplicaList
	s.Expect(s.Client().List(s.ctx, &list, client.InNamespace(s.Namespace()), client.MatchingLabels{"longhornvolume": volume})).To(Succeed())
	slices.SortFunc(list.Items, func(a, b lh.Replica) int { return strings.Compare(a.Spec.NodeID, b.Spec.NodeID) })

	return list.Items
}

// replica of a volume on a node.
func (s *subject) replica(volume, node string) *lh.Replica {
	for _, r := range s.replicas(volume) {
		if r.Spec.NodeID == node {
			return &r
		}
	}

	s.Expect(node).To(BeEmpty(), "volume %s has no replica on this node", volume)

	return nil
}

// on are the nodes of a volume's replicas.
func (s *subject) on(volume string) []string {
	nodes := []string{}
	for _, r := range s.replicas(volume) {
		nodes = append(nodes, r.Spec.NodeID)
	}

	return nodes
}

// mode is what the engine does with the replica on a node.
func (s *subject) mode(volume, node string) lh.ReplicaMode {
	return s.engine(volume).Status.ReplicaModeMap[s.replica(volume, node).Name]
}

// progress of the copy that is made for a volume, or -1.
func (s *subject) progress(volume string) int {
	for _, status := range s.engine(volume).Status.RebuildStatus {
		return status.Progress
	}

	return -1
}

// protected is whether a node's instance manager has a disruption budget.
func (s *subject) protected(node string) bool {
	budget, err := s.Budget(s.ctx, node, lh.DataEngineV1)
	s.Expect(err).NotTo(HaveOccurred())

	return budget != nil
}

// ready is the Ready condition of a Longhorn node, with its reason.
func (s *subject) ready(node string) string {
	condition := lh.FindCondition(s.node(node).Status.Conditions, lh.ConditionReady)

	return string(condition.Status) + " " + condition.Reason
}

// disk is the only disk of a node, with its name.
func (s *subject) disk(node string) (string, lh.DiskStatus) {
	n := s.node(node)
	s.Expect(n.Status.DiskStatus).To(HaveLen(1))

	for name, status := range n.Status.DiskStatus {
		return name, status
	}

	return "", lh.DiskStatus{}
}

// path is where the only disk of a node is.
func (s *subject) path(node string) string {
	name, _ := s.disk(node)

	return s.node(node).Spec.Disks[name].Path
}

// invalid and later are the two ways in which the webhook refuses.
func (s *subject) invalid(err error, words string) {
	s.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
	s.Expect(err).To(MatchError(ContainSubstring(words)))
}

func (s *subject) later(err error, words string) {
	s.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
	s.Expect(err).To(MatchError(ContainSubstring(words)))
}

func (s *subject) namespace(name string) string {
	name = strings.TrimSuffix(s.a, "-a") + "-" + name
	s.Expect(s.Client().Create(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())

	return name
}

func key(s *subject, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: s.Namespace(), Name: name}
}

func clusterKey(name string) client.ObjectKey { return client.ObjectKey{Name: name} }
