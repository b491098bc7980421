// SPDX-License-Identifier: Apache-2.0

package talos_test

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/talos"
	"github.com/maesh-dev/ichor/test/talossim"
)

func TestObserveWhatANodeSays(t *testing.T) {
	t.Parallel()

	w := newWorld(t, talos.Options{})
	w.grow(3)

	seen := w.open().Observe(w.ctx)
	w.Expect(seen).To(HaveLen(3))

	for _, n := range w.nodes {
		node := seen[n.Name()]
		w.Expect(node.Err).NotTo(HaveOccurred())
		w.Expect(node.Gaps).To(BeEmpty())
		w.Expect([]string{node.Machine, node.Address, node.Version, node.Hostname, node.NodeName, node.BootID, node.Stage}).To(Equal(
			[]string{n.Name(), n.Address() + ":50000", "v1.14.1", n.Name(), n.Name(), n.BootID(), "running"}))
		w.Expect(node.SystemUUID).NotTo(BeEmpty())
		w.Expect(node.ControlPlane).To(BeTrue())
		w.Expect(node.TimeSynced).To(Equal(new(true)))
		w.Expect(node.Ready).To(BeTrue(), "%v", node.Unmet)

		service, ok := node.Service("etcd")
		w.Expect(ok && service.Running() && service.Problem() == "").To(BeTrue())

		w.Expect(node.PodsKnown).To(BeTrue())

		for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
			pod, ok := node.StaticPod(component)
			w.Expect(ok && pod.Ready && pod.Problem == "").To(BeTrue(), component)
		}

		w.Expect(node.Etcd.Answered).To(BeTrue())
		w.Expect(node.Etcd.Self).To(Equal(member(n)))
		w.Expect(node.Etcd.Data).To(Equal(etcd.DataPresent))
		w.Expect(node.Etcd.Members).To(HaveLen(3))
	}

	judged := w.judged()
	w.Expect(judged.Agreement).To(Equal(etcd.Agreed), judged.Problem)
	w.Expect(judged.Healthy()).To(Equal(3))
}

// TestLeastRole proves that observing takes no more than a reader's certificate, and that an administrator's is used where Talos wants one.
func TestLeastRole(t *testing.T) {
	t.Parallel()

	w := newWorld(t, talos.Options{})
	w.grow(1)

	before := len(w.nodes[0].Calls())
	w.Expect(w.observe(w.nodes[0]).Err).NotTo(HaveOccurred())

	observed := w.nodes[0].Calls()[before:]
	w.Expect(observed).NotTo(BeEmpty())

	for _, call := range observed {
		w.Expect(call.Roles).To(Equal([]string{"os:reader"}), call.Method)
	}

	for _, call := range w.nodes[0].Calls() {
		if call.Method == "Bootstrap" {
			w.Expect(call.Roles).To(Equal([]string{"os:admin"}))
		}
	}
}

// TestThreeOfTenAreBlackHoles proves that nodes that accept connections and say nothing cost the others nothing, on connections that are new
// and on such that exist.
func TestThreeOfTenAreBlackHoles(t *testing.T) {
	t.Parallel()

	const timeout = 10 * time.Second

	w := newWorld(t, talos.Options{Timeout: timeout})
	w.grow(10)

	// With one, all could be asked in turn within the time.
	holes := []*talossim.Node{w.nodes[1], w.nodes[4], w.nodes[8]}

	for what, class := range map[string]error{"a connection that exists": talos.ErrSlow, "a new connection": talos.ErrUnreachable} {
		names := map[string]bool{}

		for _, hole := range holes {
			names[hole.Name()] = true
			hole.SetFaults(talossim.Faults{})

			if errors.Is(class, talos.ErrSlow) {
				w.Expect(w.observe(hole).Err).NotTo(HaveOccurred())
			}
		}

		if !errors.Is(class, talos.ErrSlow) {
			w.pool.Forget(key)
		}

		for _, hole := range holes {
			hole.SetFaults(talossim.Faults{BlackHole: true})
		}

		begun := time.Now()
		seen := w.open().Observe(w.ctx)
		took := time.Since(begun)

		w.Expect(took).To(BeNumerically("<", timeout+5*time.Second), what)
		w.Expect(seen).To(HaveLen(10))

		for name, node := range seen {
			if names[name] {
				w.Expect(node.Err).To(MatchError(class), what)
				w.Expect(node.Etcd.Answered).To(BeFalse())
				w.Expect(node.Etcd.Data).To(Equal(etcd.DataUnknown))

				continue
			}

			w.Expect(node.Err).NotTo(HaveOccurred(), what)
			w.Expect(node.Etcd.Members).To(HaveLen(10), what)
		}
	}
}

func TestFaultsHaveClassesAndWords(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		faults  talossim.Faults
		timeout time.Duration
		machine func(*talos.Machine)
		class   error
		words   string
	}{
		"refuses connections": {
			faults: talossim.Faults{Unreachable: true}, class: talos.ErrUnreachable,
			words: "machine cp1: no connection to ADDRESS:50000: connection refused; see that the machine is on and that its Talos API can be reached from here",
		},
		"black hole": {
			faults: talossim.Faults{BlackHole: true}, timeout: 2 * time.Second, class: talos.ErrUnreachable,
			words: "machine cp1: no connection to ADDRESS:50000: nobody answers; see that the machine is on and that its Talos API can be reached from here",
		},
		"slow": {
			faults: talossim.Faults{Delay: time.Hour}, timeout: 5 * time.Second, class: talos.ErrSlow,
			words: "machine cp1: its node at ADDRESS:50000 does not answer in time: it has too much to do, or the network to it loses what is sent",
		},
		"another authority": {
			faults: talossim.Faults{WrongCA: true}, class: talos.ErrForeign,
			words: "machine cp1: what answers at ADDRESS:50000 has a certificate of another Talos CA than the one in the cluster's secrets bundle: " +
				"it is not a node of this cluster. If the address is the machine's, it was configured for another cluster: delete the Machine, and another is made. " +
				"If all machines say so, the bundle is the wrong one: delete none, and put the right one back",
		},
		"clock ahead": {
			faults: talossim.Faults{ClockSkew: 3 * time.Hour}, class: talos.ErrClock,
			words: "machine cp1: the certificate of its node at ADDRESS:50000 is expired or not valid yet: its clock and ours differ, set both by NTP",
		},
		"clock behind": {
			faults: talossim.Faults{ClockSkew: -time.Hour}, class: talos.ErrClock,
			words: "machine cp1: its node at ADDRESS:50000 takes our new certificate for one that is expired or not valid yet: its clock and ours differ, set both by NTP",
		},
		"other hostname": {
			faults: talossim.Faults{Hostname: "stranger"}, class: talos.ErrAnotherNode,
			words: `machine cp1: the Node "stranger" answers, and the Machine's is "cp1": another machine has the address now, or the node's host name was changed, ` +
				`which Kubernetes takes for another Node; change it back`,
		},
		"worker": {
			machine: func(m *talos.Machine) { m.ControlPlane = false }, class: talos.ErrAnotherNode,
			words: "machine cp1: the node that answers is one of the control plane, and the Machine is a worker",
		},
		"no address": {
			machine: func(m *talos.Machine) { m.Addresses = nil }, class: talos.ErrNoAddress,
			words: "machine cp1: it has no address yet (its infrastructure machine reports none in status.addresses; some platforms need a guest agent for that)",
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := newWorld(t, talos.Options{Timeout: test.timeout})
			w.growBare(1)
			w.nodes[0].SetFaults(test.faults)

			m := machineOf(w.nodes[0])
			if test.machine != nil {
				test.machine(&m)
			}

			for range 2 { // the same words for the same facts
				node := w.open(m).Observe(w.ctx, "cp1")["cp1"]
				w.Expect(node.Err).To(MatchError(test.class))
				w.Expect(node.Err.Error()).To(Equal(atAddress(test.words, w.nodes[0])))
				w.Expect(node.Etcd.Answered).To(BeFalse())
				w.Expect("machine cp1: " + node.Etcd.Problem).To(Equal(node.Err.Error()))
				w.Expect(talos.Reason(node.Err)).NotTo(BeEmpty())
			}
		})
	}
}

func TestNodesOfOthersAndWithoutConfiguration(t *testing.T) {
	t.Parallel()

	w := newWorld(t, talos.Options{})

	blank, err := w.sim.Start(w.ctx, talossim.NodeOptions{Name: "blank"}, nil)
	w.Expect(err).NotTo(HaveOccurred())

	ours := w.cluster
	w.cluster, err = simulated["other"]()
	w.Expect(err).NotTo(HaveOccurred())

	foreign := w.start("foreign", machinetype.TypeControlPlane)
	w.cluster = ours

	seen := w.open(machineOf(blank), machineOf(foreign)).Observe(w.ctx)
	w.Expect(seen["blank"].Err).To(MatchError(talos.ErrMaintenance))
	w.Expect(seen["blank"].Etcd.Data).To(Equal(etcd.DataUnknown), "what an unknown node says proves nothing")
	w.Expect(seen["foreign"].Err).To(MatchError(talos.ErrForeign))
}

// TestAddressOfAnotherNode is about an address that has moved: a virtual one, or one that was given to the next machine.
func TestAddressOfAnotherNode(t *testing.T) {
	t.Parallel()

	w := newWorld(t, talos.Options{})
	w.grow(2)

	at := func(name string, joined bool, addresses ...string) talos.Machine {
		m := talos.Machine{Name: name, ControlPlane: true}
		if joined {
			m.NodeName = name
		}

		for _, address := range addresses {
			m.Addresses = append(m.Addresses, clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: address})
		}

		return m
	}
	one, two := w.nodes[0], w.nodes[1]

	t.Run("a virtual address is on another node, and the own one is tried next", func(t *testing.T) {
		node := w.open(at("cp1", true, two.Address(), one.Address()), at("gone", true)).Observe(w.ctx, "cp1")["cp1"]
		w.Expect(node.Err).NotTo(HaveOccurred())
		w.Expect(node.Etcd.Self).To(Equal(member(one)))
	})

	t.Run("an address was reused", func(t *testing.T) {
		node := w.open(at("gone", true, two.Address())).Observe(w.ctx, "gone")["gone"]
		w.Expect(node.Err).To(MatchError(talos.ErrAnotherNode))
		w.Expect(node.Err.Error()).To(HavePrefix(`machine gone: the Node "cp2" answers, and the Machine's is "gone": another machine has the address now`))
	})

	t.Run("an address of two Machines is not dialled", func(t *testing.T) {
		before := len(two.Calls())
		node := w.open(at("cp2", true, two.Address()), at("new", false, two.Address())).Observe(w.ctx, "cp2")["cp2"]
		w.Expect(node.Err).To(MatchError(talos.ErrNoAddress))
		w.Expect(node.Err.Error()).To(ContainSubstring("is the address of Machine new, too"))
		w.Expect(two.Calls()).To(HaveLen(before))
	})

	t.Run("the control-plane endpoint is not dialled", func(t *testing.T) {
		nodes := w.client().Nodes(talos.Reach{Endpoint: one.Address()}, []talos.Machine{at("cp1", true, one.Address())})
		w.Expect(nodes.Observe(w.ctx)["cp1"].Err).To(MatchError(talos.ErrNoAddress))
	})

	t.Run("a Machine that has not joined is answered by the node of one that has", func(t *testing.T) {
		node := w.open(at("cp2", true), at("new", false, two.Address())).Observe(w.ctx, "new")["new"]
		w.Expect(node.Err).NotTo(HaveOccurred(), "it has the address for its own, and nobody else has")

		known := at("other", true)
		known.NodeName = "cp2"
		proxied := talos.Reach{API: bootstrapv1.TalosAPISpec{Endpoints: []string{one.Address()}, AddressTypes: []clusterv1.MachineAddressType{clusterv1.MachineHostName}}}
		named := talos.Machine{Name: "new", ControlPlane: true, Addresses: []clusterv1.MachineAddress{{Type: clusterv1.MachineHostName, Address: "cp2"}}}
		node = w.client().Nodes(proxied, []talos.Machine{known, named}).Observe(w.ctx, "new")["new"]
		w.Expect(node.Err).To(MatchError(talos.ErrAnotherNode))
		w.Expect(node.Err.Error()).To(Equal("machine new: the node of Machine other answers"))
	})

	t.Run("a Machine that has not joined is answered by another's etcd member", func(t *testing.T) {
		known := at("other", false)
		known.Recorded = []etcd.MemberID{member(two)}
		node := w.open(known, at("new", false, two.Address())).Observe(w.ctx, "new")["new"]
		w.Expect(node.Err).To(MatchError(talos.ErrAnotherNode))
		w.Expect(node.Err.Error()).To(HavePrefix("machine new: the node of Machine other answers: it is etcd member "))
	})
}

func TestThroughALoadBalancer(t *testing.T) {
	t.Parallel()

	w := newWorld(t, talos.Options{})
	w.grow(3)

	reach := talos.Reach{API: bootstrapv1.TalosAPISpec{Endpoints: []string{w.nodes[0].Address()}}}
	seen := w.client().Nodes(reach, w.machines()).Observe(w.ctx)

	for _, n := range w.nodes {
		w.Expect(seen[n.Name()].Err).NotTo(HaveOccurred())
		w.Expect(seen[n.Name()].Etcd.Self).To(Equal(member(n)))
		w.Expect(seen[n.Name()].Address).To(Equal(n.Address() + " through " + w.nodes[0].Address() + ":50000"))
	}

	w.nodes[2].PowerOff()

	seen = w.client().Nodes(reach, w.machines()).Observe(w.ctx)
	w.Expect(seen["cp2"].Err).NotTo(HaveOccurred())
	w.Expect(seen["cp3"].Err).To(MatchError(talos.ErrUnreachable))
	w.Expect(seen["cp3"].Etcd.Data).To(Equal(etcd.DataUnknown))
}

func TestEtcdOfANode(t *testing.T) {
	t.Parallel()

	w := newWorld(t, talos.Options{})
	w.growBare(1)

	node := w.observe(w.nodes[0])
	w.Expect(node.Err).NotTo(HaveOccurred())
	w.Expect(node.Etcd.Data).To(Equal(etcd.DataAbsent), "%v", node.Gaps)
	w.Expect(node.Etcd.Problem).To(Equal("service etcd is preparing"))
	w.Expect([]any{node.Stage, node.Ready}).To(Equal([]any{"booting", false}), "it waits for etcd")

	w.Expect(w.open().Bootstrap(w.ctx, "cp1")).To(Succeed())
	w.Eventually(func() etcd.DataState { return w.observe(w.nodes[0]).Etcd.Data }, patience, "5ms").Should(Equal(etcd.DataPresent))

	t.Run("a member that never starts", func(t *testing.T) {
		stuck, err := w.sim.NewNode(talossim.NodeOptions{Name: "cp2"})
		w.Expect(err).NotTo(HaveOccurred())
		stuck.SetUserData(w.nodes[0].Config())
		stuck.SetFaults(talossim.Faults{EtcdNeverStarts: true})
		w.Expect(stuck.PowerOn(w.ctx)).To(Succeed())
		w.nodes = append(w.nodes, stuck)

		w.Eventually(func() []etcd.Member { return w.observe(w.nodes[0]).Etcd.Members }, patience, "5ms").Should(HaveLen(2))
		node := w.observe(stuck)
		w.Expect(node.Err).NotTo(HaveOccurred())
		w.Expect(node.Etcd.Self).To(BeZero())
		w.Expect(node.Etcd.Data).To(Equal(etcd.DataAbsent))

		for _, m := range w.observe(w.nodes[0]).Etcd.Members {
			w.Expect(m.Name == "").To(Equal(m.Learner))
		}
	})

	t.Run("a learner", func(t *testing.T) {
		w.nodes[1].SetFaults(talossim.Faults{EtcdNeverCatchesUp: true})
		w.Eventually(func() bool { return w.observe(w.nodes[1]).Learner }, patience, "5ms").Should(BeTrue())
		node := w.observe(w.nodes[1])
		w.Expect(node.Etcd.Self).To(Equal(member(w.nodes[1])))
		w.Expect(node.Etcd.Members).To(BeEmpty())
		w.Expect(node.Etcd.Problem).To(BeEmpty())
		w.Expect(node.Gaps).To(BeEmpty())
		w.nodes[1].SetFaults(talossim.Faults{})
		w.Eventually(func() bool { return w.votes(w.nodes[1]) }, patience, "5ms").Should(BeTrue())
	})

	t.Run("an alarm", func(t *testing.T) {
		w.Expect(w.nodes[1].RaiseEtcdAlarm(machine.EtcdMemberAlarm_NOSPACE)).To(Succeed())

		want := []etcd.Alarm{{Member: member(w.nodes[1]), Type: "NOSPACE"}}
		for _, n := range w.nodes {
			w.Expect(w.observe(n).Etcd.Alarms).To(Equal(want))
		}
	})

	t.Run("without a quorum", func(t *testing.T) {
		w.nodes[1].PowerOff()
		node := w.observe(w.nodes[0])
		w.Expect(node.Err).NotTo(HaveOccurred())
		w.Expect(node.Etcd.Leader).To(BeZero())
		w.Expect(node.Etcd.Members).To(BeEmpty())
		w.Expect(node.Etcd.Problem).To(HavePrefix("etcd does not list its members: "))
		w.Expect(node.Etcd.Data).To(Equal(etcd.DataPresent))
	})
}

// TestEmptyIsProved goes through everything that looks like a node without etcd data, and is none.
func TestEmptyIsProved(t *testing.T) {
	t.Parallel()

	tests := map[string]func(*world){
		"the volume is not mounted": func(w *world) { w.nodes[0].SetFaults(talossim.Faults{NotMounted: "EPHEMERAL"}) },
		"it cannot be listed": func(w *world) {
			w.nodes[0].FailNext("List", status.Error(codes.Unknown, "lstat: no such file or directory"))
		},
		"its mounts are not told": func(w *world) { w.nodes[0].FailNext("State/Get", status.Error(codes.Unavailable, "no")) },
	}

	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := newWorld(t, talos.Options{})
			w.growBare(1)
			spoil(w)

			node := w.observe(w.nodes[0])
			w.Expect(node.Etcd.Data).To(Equal(etcd.DataUnknown))
			spoil(w)
			w.Expect(w.open().Bootstrap(w.ctx, "cp1")).NotTo(Succeed())
			w.Expect(w.nodes[0].CallCount("Bootstrap")).To(BeZero())
		})
	}
}

// TestGaps is about a node that answers, and not to everything.
func TestGaps(t *testing.T) {
	t.Parallel()

	w := newWorld(t, talos.Options{})
	w.grow(1)

	w.nodes[0].FailNext("ServiceList", status.Error(codes.Internal, "machined is busy"))

	node := w.observe(w.nodes[0])
	w.Expect(node.Err).NotTo(HaveOccurred())
	w.Expect(node.Gaps).To(Equal([]string{"its services: machined is busy"}))
	w.Expect(node.Etcd.Answered).To(BeTrue())
	w.Expect(node.Etcd.Self).To(BeZero())
	w.Expect(node.Etcd.Data).To(Equal(etcd.DataPresent), "its disk says so")
	w.Expect(node.Etcd.Problem).To(Equal("its node does not say whether etcd runs"))

	w.nodes[0].FailNext("State/List", status.Error(codes.Internal, "no"))
	node = w.observe(w.nodes[0])
	w.Expect(node.PodsKnown).To(BeFalse())
	w.Expect(node.StaticPods).To(BeEmpty())

	w.nodes[0].SetFaults(talossim.Faults{TimeUnsynced: true})
	w.Expect(w.observe(w.nodes[0]).TimeSynced).To(Equal(new(false)))
}
