// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/test/builder"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	play "github.com/maesh-dev/ichor/test/scenario"
)

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
			s.Expect(s.Node(odd).RaiseEtcdAlarm(machineapi.EtcdMemberAlarm_NOSPACE)).To(Succeed())
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
// little it costs them is measured by TestThreeOfTenAreBlackHoles of package internal/talos, on a machine that has nothing else to do.
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

	s.Expect(s.Node(second).RaiseEtcdAlarm(machineapi.EtcdMemberAlarm_NOSPACE)).To(Succeed())

	s.Eventually(func() string { return s.said(second, controlplanev1.MachineEtcdMemberHealthyCondition) }).Should(ContainSubstring("NOSPACE"))

	other.Create(clusterOf(infrav1.FidelityLight, 1))
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

	part := &scenario{Scenario: s.For(t), t: t, ctx: s.ctx, namespace: s.namespace, begin: s.begin}
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

	s.Create(clusterOn(infrav1.FidelityLight, infrav1.SimMachineSpec{Faults: faults}, 3))
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
	s.Create(builder.ControlPlaneMachine(play.Cluster, name).Sim(infrav1.SimMachineSpec{Faults: faults}))
}

// hasVote waits until a machine's etcd member is well.
func (s *scenario) hasVote(name string) {
	s.t.Helper()

	s.Eventually(func() string { return s.said(name, controlplanev1.MachineEtcdMemberHealthyCondition) }).Should(HavePrefix("True"), name)
}

// goes deletes the cluster, and does not wait until it is gone.
func (s *scenario) goes() {
	s.t.Helper()

	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "c"}}
	s.Expect(s.Client.Delete(s.ctx, cluster)).To(Succeed())
}
