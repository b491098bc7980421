// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/test/builder"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	play "github.com/maesh-dev/ichor/test/scenario"
	"github.com/maesh-dev/ichor/test/talossim"
)

// update writes golden files anew: package scenario has the flag.
func update() bool { return flag.Lookup("update").Value.String() == "true" }

const (
	// second is a machine that is well, odd the one that is in trouble. The first is made by the control plane.
	second, odd = "second", "odd"

	// virtual is an address at which nobody answers.
	virtual = "127.255.255.1"
)

// situation is a control plane of three machines, two of which are well.
type situation struct {
	// faults are the odd machine's, from its first boot on; everyones those of all three.
	faults, everyones infrav1.Faults

	// alone is a control plane whose first machine is the odd one.
	alone bool

	// brief is one that the control plane itself ends, some minutes after the odd machine has come. It is played before the others, and what the
	// plan says of it changes with the time: that is in no golden file.
	brief bool

	// then is what happens when all three are there.
	then func(s *scenario)

	// says is the condition of the odd Machine that says what is wrong, with the words that must be in it; plan the words of the plan.
	condition string
	status    metav1.ConditionStatus
	says      []string
	plan      []string
}

// situations are those that keep the field's users waiting, and what is said then. Golden files have the whole of it.
var situations = map[string]situation{
	"another host name than the Machine": {
		faults:    infrav1.Faults{Hostname: "talos-x1y-z2"},
		condition: controlplanev1.MachineTalosHealthyCondition, status: metav1.ConditionTrue,
		says: []string{"host name is talos-x1y-z2", "hostname.source", "Nothing is held up"},
	},
	"a virtual address among the addresses": {
		everyones: infrav1.Faults{VirtualAddress: virtual},
		condition: controlplanev1.MachineEtcdMemberHealthyCondition, status: metav1.ConditionTrue,
	},
	"no address but a virtual one": {
		everyones: infrav1.Faults{VirtualAddress: virtual}, faults: infrav1.Faults{VirtualAddress: virtual, NoAddress: true},
		condition: controlplanev1.MachineTalosHealthyCondition, status: metav1.ConditionUnknown,
		says: []string{"no address of its own", virtual + " is the address of Machine"},
		plan: []string{"no address of its own"},
	},
	"no address": {
		faults:    infrav1.Faults{NoAddress: true},
		condition: controlplanev1.MachineTalosHealthyCondition, status: metav1.ConditionUnknown,
		says: []string{"no address yet", "status.addresses", "guest agent"},
		plan: []string{"no address yet"},
	},
	"a node with a foreign CA": {
		faults:    infrav1.Faults{WrongCA: true},
		condition: controlplanev1.MachineTalosHealthyCondition, status: metav1.ConditionUnknown,
		says: []string{"another Talos CA than the one in the cluster's secrets bundle", "delete the Machine"},
		plan: []string{"another Talos CA"},
	},
	"a foreign CA on the first machine": {
		faults: infrav1.Faults{WrongCA: true}, alone: true,
		condition: controlplanev1.MachineTalosHealthyCondition, status: metav1.ConditionUnknown,
		says: []string{"another Talos CA than the one in the cluster's secrets bundle"},
		plan: []string{"has not come up", "another Talos CA", "delete the Machine"},
	},
	"a clock that is behind": {
		faults:    infrav1.Faults{ClockSkewSeconds: -7200},
		condition: controlplanev1.MachineTalosHealthyCondition, status: metav1.ConditionUnknown,
		says: []string{"clock and ours differ", "NTP"},
		plan: []string{"clock and ours differ", "NTP"},
	},
	"a node that is slow": {
		faults:    infrav1.Faults{DelayMilliseconds: 120_000},
		condition: controlplanev1.MachineTalosHealthyCondition, status: metav1.ConditionUnknown,
		says: []string{"does not answer in time", "too much to do"},
		plan: []string{"does not answer in time"},
	},
	"a learner": {
		faults:    infrav1.Faults{EtcdNeverCatchesUp: true},
		condition: controlplanev1.MachineEtcdMemberHealthyCondition, status: metav1.ConditionFalse,
		says: []string{"learner", "no vote", "log of etcd", "delete the Machine"},
		plan: []string{"is a learner"},
	},
	"a member that has not started": {
		faults: infrav1.Faults{EtcdNeverStarts: true}, brief: true,
		condition: controlplanev1.MachineEtcdMemberHealthyCondition, status: metav1.ConditionFalse,
		says: []string{"has not started", "service etcd", "log of etcd", "delete the Machine"},
		plan: []string{"has not started"},
	},
	"an alarm": {
		then: func(s *scenario) {
			s.Expect(s.simulated(odd).Node.RaiseEtcdAlarm(machineapi.EtcdMemberAlarm_NOSPACE)).To(Succeed())
		},
		condition: controlplanev1.MachineEtcdMemberHealthyCondition, status: metav1.ConditionFalse,
		says: []string{"NOSPACE", "quota", "talosctl etcd alarm disarm"},
	},
	"a clock that nobody sets": {
		faults:    infrav1.Faults{TimeUnsynced: true},
		condition: controlplanev1.MachineTalosHealthyCondition, status: metav1.ConditionFalse,
		says: []string{"time is not synchronized", "time servers"},
	},
}

// Whatever keeps a control plane waiting is said in words, with what to do: on the Machine, on the control plane and by its plan. The machines
// are of light fidelity, and all situations are played at the same time, but for those that do not last.
//
// contract: Machines without an owner are adopted.
func TestWords(t *testing.T) {
	onlyLong(t)

	t.Parallel()

	all := map[string]*scenario{}
	for name, each := range situations {
		all[name] = newScenario(t)
		all[name].play(each)
	}

	for name, each := range situations {
		if s := all[name]; !each.alone {
			s.bootstrappedOnce()
			s.add(second, each.everyones)
		}
	}

	for _, brief := range []bool{true, false} {
		played := maps.Clone(situations)
		maps.DeleteFunc(played, func(_ string, each situation) bool { return each.brief != brief })
		playAll(t, all, played)
	}
}

// playAll adds the odd machines to control planes of which two machines are there, and compares what is said then.
func playAll(t *testing.T, all map[string]*scenario, played map[string]situation) {
	t.Helper()

	for name, each := range played {
		if s := all[name]; !each.alone {
			s.hasVote(second)
			s.add(odd, merged(each))
		}
	}

	for name, each := range played {
		if s := all[name]; !each.alone {
			s.initialized()
		}
	}

	for name, each := range played {
		t.Run(name, func(t *testing.T) {
			s := all[name].of(t)

			if each.then != nil {
				s.hasVote(odd)
				each.then(s)
			}

			s.told(each)
			s.golden(filepath.Join("testdata", "words", strings.ReplaceAll(name, " ", "-")+".golden"), !each.brief)
			s.goes()
		})
	}
}

// A node that accepts connections and says nothing does not keep anybody from hearing of the others, nor of other control planes. How
// little it costs them is measured by TestOneOfTenIsABlackHole of package internal/talos, on a machine that has nothing else to do.
func TestBlackHoleDelaysNobody(t *testing.T) {
	onlyLong(t)

	t.Parallel()

	s, other := newScenario(t), newScenario(t)
	hole := situation{
		faults:    infrav1.Faults{BlackHole: true},
		condition: controlplanev1.MachineTalosHealthyCondition, status: metav1.ConditionUnknown,
		says: []string{"nobody answers", "Talos API can be reached"},
		plan: []string{"nobody answers"},
	}

	s.play(hole)
	s.bootstrappedOnce()
	s.add(second, infrav1.Faults{})
	s.hasVote(second)
	s.add(odd, hole.faults)
	s.initialized()
	s.told(hole)

	s.Expect(s.simulated(second).Node.RaiseEtcdAlarm(machineapi.EtcdMemberAlarm_NOSPACE)).To(Succeed())

	s.Eventually(func() string { return s.said(second, controlplanev1.MachineEtcdMemberHealthyCondition) }).Should(ContainSubstring("NOSPACE"))

	other.create(clusterYAML("Light", 1))
	other.bootstrappedOnce()

	s.goes()
	other.goes()
}

func merged(of situation) infrav1.Faults {
	if of.faults != (infrav1.Faults{}) {
		return of.faults
	}

	return of.everyones
}

// of is the scenario for a part of the test.
func (s *scenario) of(t *testing.T) *scenario {
	t.Helper()

	part := &scenario{
		Scenario: &play.Scenario{WithT: NewWithT(t), Suite: s.Suite, Ctx: s.Ctx, Namespace: s.Namespace, Watch: s.Watch},
		t:        t, ctx: s.ctx, namespace: s.namespace, begin: s.begin,
	}
	part.SetDefaultEventuallyTimeout(patience)
	part.SetDefaultEventuallyPollingInterval(250 * time.Millisecond)

	return part
}

// play makes a control plane that wants three machines. It makes the first.
func (s *scenario) play(of situation) {
	s.t.Helper()

	faults := of.everyones
	if of.alone {
		faults = of.faults
	}

	s.create(clusterWith("{fidelity: Light}", "", 3))
	s.Expect(s.Client.Create(s.ctx, s.here(builder.Sim{MachineSpec: infrav1.SimMachineSpec{Faults: faults}}.Template("cp")))).To(Succeed())
}

func (s *scenario) here(object client.Object) client.Object {
	object.SetNamespace(s.namespace)

	return object
}

// first is the machine that the control plane has made.
func (s *scenario) first() string {
	for _, machine := range s.machineList() {
		if machine.Name != second && machine.Name != odd {
			return machine.Name
		}
	}

	return ""
}

// initialized waits until all three machines are the control plane's, and takes the part of a Kubernetes API server that answers then, and of
// Cluster API, which finds the Nodes of those that are well.
func (s *scenario) initialized() {
	s.t.Helper()

	s.Eventually(func() string { return s.said(odd, controlplanev1.MachineTalosHealthyCondition) }).ShouldNot(Equal("is not there"), "Machine odd is not adopted")

	tcp := s.controlPlane()
	before := tcp.DeepCopy()
	tcp.Status.Initialization.ControlPlaneInitialized = new(true)
	s.Expect(s.Client.Status().Patch(s.ctx, tcp, client.MergeFrom(before))).To(Succeed())
	s.link(s.first())
	s.link(second)
}

// link takes the part of Cluster API, which finds the Node of a Machine.
func (s *scenario) link(name string) {
	s.t.Helper()

	machine := &clusterv1.Machine{}
	s.Expect(s.Client.Get(s.ctx, s.key(name), machine)).To(Succeed())

	before := machine.DeepCopy()
	machine.Status.NodeRef = clusterv1.MachineNodeReference{Name: name}
	s.Expect(s.Client.Status().Patch(s.ctx, machine, client.MergeFrom(before))).To(Succeed())
}

// add makes a control-plane Machine that nobody owns, which the control plane adopts.
func (s *scenario) add(name string, faults infrav1.Faults) {
	s.t.Helper()

	for _, object := range builder.ControlPlaneMachine("c", name).Sim(infrav1.SimMachineSpec{Faults: faults}).Objects() {
		s.Expect(s.Client.Create(s.ctx, s.here(object))).To(Succeed(), "%T", object)
	}
}

// hasVote waits until a machine's etcd member is well.
func (s *scenario) hasVote(name string) {
	s.t.Helper()

	s.Eventually(func() string { return s.said(name, controlplanev1.MachineEtcdMemberHealthyCondition) }).Should(HavePrefix("True"), name)
}

// said is what a condition of a Machine says.
func (s *scenario) said(name, condition string) string {
	machine := &clusterv1.Machine{}
	if err := s.Client.Get(s.ctx, s.key(name), machine); err != nil {
		return err.Error()
	}

	return spoken(machine, condition)
}

func spoken(object conditions.Getter, condition string) string {
	c := conditions.Get(object, condition)
	if c == nil {
		return "is not there"
	}

	return strings.TrimSuffix(fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message), ": ")
}

// told waits until a situation is told in the words that it must be told in.
func (s *scenario) told(of situation) {
	s.t.Helper()

	about := odd
	if of.alone {
		about = s.first()
	}

	s.Eventually(func() string { return s.said(about, of.condition) }).Should(And(HavePrefix(string(of.status)), containing(of.says)))
	s.Eventually(func() string { return s.controlPlane().Status.Plan.Message }).Should(containing(of.plan))
}

func containing(words []string) types.GomegaMatcher {
	all := make([]types.GomegaMatcher, 0, len(words))
	for _, word := range words {
		all = append(all, ContainSubstring(word))
	}

	return And(all...)
}

// golden compares all that is said with a file, in which machines have names that do not change.
func (s *scenario) golden(path string, plan bool) {
	s.t.Helper()

	said := func() string { return s.everythingSaid(plan) }

	if update() {
		var last string

		s.Eventually(func() bool { // what is said goes on changing while machines come up
			before := last
			last = said()

			return before == last
		}).WithPolling(5 * time.Second).Should(BeTrue())
		s.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		s.Expect(os.WriteFile(path, []byte(last), 0o600)).To(Succeed())

		return
	}

	want, err := os.ReadFile(path)
	s.Expect(err).NotTo(HaveOccurred())
	s.Eventually(said).Should(Equal(string(want)), "%s differs (go test -update writes it anew)", path)
}

// everythingSaid is what the Machines and the control plane say, and its plan if that is wanted.
func (s *scenario) everythingSaid(plan bool) string {
	var out strings.Builder

	list := s.machineList()
	slices.SortFunc(list, func(a, b clusterv1.Machine) int { return strings.Compare(s.anonymous(a.Name), s.anonymous(b.Name)) })

	for i := range list {
		fmt.Fprintf(&out, "Machine %s\n", list[i].Name)

		for _, condition := range []string{
			controlplanev1.MachineAPIServerPodHealthyCondition, controlplanev1.MachineControllerManagerPodHealthyCondition,
			controlplanev1.MachineSchedulerPodHealthyCondition, controlplanev1.MachineEtcdMemberHealthyCondition, controlplanev1.MachineTalosHealthyCondition,
		} {
			fmt.Fprintf(&out, "  %s %s\n", condition, spoken(&list[i], condition))
		}
	}

	tcp := s.controlPlane()
	fmt.Fprintf(&out, "TalosControlPlane\n")

	for _, condition := range []string{
		controlplanev1.AvailableCondition, controlplanev1.EtcdClusterHealthyCondition, controlplanev1.ControlPlaneComponentsHealthyCondition,
	} {
		fmt.Fprintf(&out, "  %s %s\n", condition, spoken(tcp, condition))
	}

	if plan {
		fmt.Fprintf(&out, "  plan %s %s: %s\n", tcp.Status.Plan.Action, tcp.Status.Plan.Reason, tcp.Status.Plan.Message)
	}

	return s.anonymous(out.String())
}

// anonymous has names, addresses and IDs of members that are the same each time.
func (s *scenario) anonymous(text string) string {
	var pairs []string

	for _, machine := range s.Stage.Machines(s.key("c")) {
		name := machine.Node.Name()
		if name == s.first() {
			pairs = append(pairs, name, "first")
			name = "first"
		}

		if id := memberOf(machine.Node); id != "" {
			pairs = append(pairs, id, "MEMBER-"+name)
		}

		pairs = append(pairs, machine.Node.Address()+":50000", "ADDRESS-"+name, machine.Node.Address(), "ADDRESS-"+name)
	}

	return strings.NewReplacer(pairs...).Replace(text)
}

func memberOf(node *talossim.Node) string {
	if id := node.EtcdMemberID(); id != 0 {
		return strconv.FormatUint(id, 16)
	}

	return ""
}

// goes deletes the cluster, and does not wait until it is gone.
func (s *scenario) goes() {
	s.t.Helper()

	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "c"}}
	s.Expect(s.Client.Delete(s.ctx, cluster)).To(Succeed())
}
