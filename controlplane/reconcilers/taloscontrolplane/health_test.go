// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/rollout"
	"github.com/maesh-dev/ichor/internal/talos"
)

// wellNode is a node of a cluster of one, well in every way.
func wellNode() talos.Node {
	node := talos.Node{
		Machine: "cp-1", Stage: "running", Ready: true, PodsKnown: true, TimeSynced: new(true),
		Etcd: etcd.View{
			Answered: true, Data: etcd.DataPresent, Self: 1, Leader: 1, Applied: 10,
			Members: []etcd.Member{{ID: 1, Name: "cp-1", PeerURLs: []string{"https://10.0.0.1:2380"}}},
		},
	}

	for _, component := range components {
		node.StaticPods = append(node.StaticPods, talos.StaticPod{Component: component, Name: component + "-cp-1", Ready: true})
	}

	return node
}

// contract: a Machine of a control plane says how its API server, controller manager, scheduler and etcd member are.
func TestHealth(t *testing.T) {
	type said map[string]string

	well := said{
		controlplanev1.MachineAPIServerPodHealthyCondition:         "True Running: ",
		controlplanev1.MachineControllerManagerPodHealthyCondition: "True Running: ",
		controlplanev1.MachineSchedulerPodHealthyCondition:         "True Running: ",
		controlplanev1.MachineEtcdMemberHealthyCondition:           "True Healthy: ",
		controlplanev1.MachineTalosHealthyCondition:                "True Healthy: ",
	}

	tests := map[string]struct {
		change func(*talos.Node)
		want   said
	}{
		"well": {func(*talos.Node) {}, nil},
		"no answer": {func(n *talos.Node) { *n = talos.Node{Err: errors.New("machine cp-1: connection refused")} }, said{
			controlplanev1.MachineAPIServerPodHealthyCondition:         "Unknown NotInspected: Machine cp-1: connection refused",
			controlplanev1.MachineControllerManagerPodHealthyCondition: "Unknown NotInspected: Machine cp-1: connection refused",
			controlplanev1.MachineSchedulerPodHealthyCondition:         "Unknown NotInspected: Machine cp-1: connection refused",
			controlplanev1.MachineEtcdMemberHealthyCondition:           "Unknown NotInspected: Machine cp-1: connection refused",
			controlplanev1.MachineTalosHealthyCondition:                "Unknown NotInspected: Machine cp-1: connection refused",
		}},
		"a pod that is not ready": {func(n *talos.Node) {
			for i := range n.StaticPods {
				if n.StaticPods[i].Component == "kube-scheduler" {
					n.StaticPods[i].Ready, n.StaticPods[i].Problem = false, "crash loop"
				}
			}
		}, said{controlplanev1.MachineSchedulerPodHealthyCondition: "False NotReady: kube-scheduler is not ready: crash loop"}},
		"no pods": {func(n *talos.Node) { n.StaticPods = nil }, said{
			controlplanev1.MachineAPIServerPodHealthyCondition:         "False DoesNotExist: The node runs no kube-apiserver",
			controlplanev1.MachineControllerManagerPodHealthyCondition: "False DoesNotExist: The node runs no kube-controller-manager",
			controlplanev1.MachineSchedulerPodHealthyCondition:         "False DoesNotExist: The node runs no kube-scheduler",
		}},
		"pods that are not known": {func(n *talos.Node) { n.StaticPods, n.PodsKnown = nil, false }, said{
			controlplanev1.MachineAPIServerPodHealthyCondition:         "Unknown InspectionFailed: The node does not say which static pods it runs",
			controlplanev1.MachineControllerManagerPodHealthyCondition: "Unknown InspectionFailed: The node does not say which static pods it runs",
			controlplanev1.MachineSchedulerPodHealthyCondition:         "Unknown InspectionFailed: The node does not say which static pods it runs",
		}},
		"a member with an alarm": {
			func(n *talos.Node) { n.Etcd.Alarms = []etcd.Alarm{{Member: 1, Type: "NOSPACE"}} },
			said{controlplanev1.MachineEtcdMemberHealthyCondition: "False NotHealthy: Etcd member 1 has the alarm " + etcd.Alarm{Type: "NOSPACE"}.String()},
		},
		"no member": {
			func(n *talos.Node) {
				n.Etcd = etcd.View{Answered: true, Data: etcd.DataAbsent, Problem: "service etcd is preparing"}
			},
			said{controlplanev1.MachineEtcdMemberHealthyCondition: "False NoMember: The machine has no etcd member: service etcd is preparing"},
		},
		"no quorum": {func(n *talos.Node) { n.Etcd.Leader = 0 }, said{
			controlplanev1.MachineEtcdMemberHealthyCondition: "False NotHealthy: 0 of 1 voting etcd members report the member list and follow one leader, 1 are needed",
		}},
		"not ready": {
			func(n *talos.Node) {
				n.Ready, n.Unmet = false, []talos.Unmet{{Name: "services", Reason: "kubelet not running"}}
			},
			said{controlplanev1.MachineTalosHealthyCondition: "False NotHealthy: Services: kubelet not running"},
		},
		"rebooting": {
			func(n *talos.Node) { n.Ready, n.Stage = false, "rebooting" },
			said{controlplanev1.MachineTalosHealthyCondition: "False NotHealthy: The node is rebooting"},
		},
		"the wrong time": {
			func(n *talos.Node) { n.TimeSynced = new(false) },
			said{controlplanev1.MachineTalosHealthyCondition: "False NotHealthy: The time is not synchronized: see that it reaches its time servers (talosctl get timeservers)"},
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			node := wellNode()
			test.change(&node)

			members := etcd.Assess([]etcd.Host{{Name: "cp-1", Addresses: []string{"10.0.0.1"}, NodeName: "cp-1", View: node.Etcd}})

			want := said{}
			maps.Copy(want, well)
			maps.Copy(want, test.want)

			got := said{}
			for _, c := range health("cp-1", node, members, false) {
				got[c.Type] = string(c.Status) + " " + c.Reason + ": " + c.Message
			}

			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A node that answers and follows a leader is well, though nobody hears of the other members; one that follows none is not.
//
// contract: nodes out of reach make no other machine unhealthy.
func TestOthersOutOfReach(t *testing.T) {
	const shortfall = "False NotHealthy: 1 of 3 voting etcd members report the member list and follow one leader, 2 are needed"

	list := []etcd.Member{
		{ID: 1, Name: "cp-1", PeerURLs: []string{"https://10.0.0.1:2380"}},
		{ID: 2, Name: "cp-2", PeerURLs: []string{"https://10.0.0.2:2380"}},
		{ID: 3, Name: "cp-3", PeerURLs: []string{"https://10.0.0.3:2380"}},
	}

	for name, test := range map[string]struct {
		leader etcd.MemberID
		want   string
	}{
		"it follows one that is silent": {2, "True Healthy: "},
		"it leads":                      {1, "True Healthy: "},
		"it follows none":               {0, strings.Replace(shortfall, "1 of 3", "0 of 3", 1)},
		"it follows one that is none":   {9, strings.Replace(shortfall, "1 of 3", "0 of 3", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			node := wellNode()
			node.Etcd.Members, node.Etcd.Leader = list, test.leader

			silent := etcd.View{Problem: "no answer"}
			members := etcd.Assess([]etcd.Host{
				{Name: "cp-1", Addresses: []string{"10.0.0.1"}, NodeName: "cp-1", View: node.Etcd},
				{Name: "cp-2", Addresses: []string{"10.0.0.2"}, NodeName: "cp-2", View: silent},
				{Name: "cp-3", Addresses: []string{"10.0.0.3"}, NodeName: "cp-3", View: silent},
			})

			if members.Agreement != etcd.NoQuorum || members.MayAdd().OK || members.MayRemove(2).OK {
				t.Errorf("the list is trusted: %v", members.Agreement)
			}

			got := memberHealth("cp-1", node, members)
			if diff := cmp.Diff(test.want, string(got.Status)+" "+got.Reason+": "+got.Message); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What Talos does without is told and is no fault, and what a machine of Kubernetes cannot do without is one.
func TestTalosHealth(t *testing.T) {
	tests := map[string]struct {
		change      func(*talos.Node)
		othersReady bool
		want        string
	}{
		"an extension waits, and Talos has booted": {
			change: func(n *talos.Node) {
				n.Services = []talos.Service{{ID: "ext-qemu-guest-agent", State: "Waiting"}, {ID: "etcd", State: "Running", Healthy: new(true)}}
			},
			want: "True Healthy: Service ext-qemu-guest-agent is waiting",
		},
		"an extension waits, and Talos with it": {
			change: func(n *talos.Node) {
				n.Stage, n.Services = "booting", []talos.Service{{ID: "ext-qemu-guest-agent", State: "Waiting"}}
			},
			want: "False NotHealthy: The node is booting, and Talos waits for what it is to run: service ext-qemu-guest-agent is waiting. " +
				"Give the machine what that needs, or boot it without: Talos reboots it when it has waited for 70 minutes",
		},
		"a service that Kubernetes needs does not run": {
			change: func(n *talos.Node) { n.Services = []talos.Service{{ID: "kubelet", State: "Failed"}} },
			want:   "False NotHealthy: Service kubelet is failed",
		},
		"any service runs and is not healthy": {
			change: func(n *talos.Node) {
				n.Services = []talos.Service{{ID: "udevd", State: "Running", Healthy: new(false)}}
			},
			want: "False NotHealthy: Service udevd is not healthy",
		},
		"no Node is ready": {
			change: func(n *talos.Node) {
				n.Ready, n.Unmet = false, []talos.Unmet{{Name: "nodeReady", Reason: `node "cp-1" is not ready`}}
			},
			want: "True Healthy: No Node of the control plane is ready. " +
				`Install a network plugin if the cluster has none (network.cni of its TalosClusterConfig): node "cp-1" is not ready`,
		},
		"its Node is not ready, and that of another is": {
			change: func(n *talos.Node) {
				n.Ready, n.Unmet = false, []talos.Unmet{{Name: "nodeReady", Reason: `node "cp-1" is not ready`}}
			},
			othersReady: true,
			want:        `False NotHealthy: NodeReady: node "cp-1" is not ready`,
		},
		"no Node is ready, and more is not": {
			change: func(n *talos.Node) {
				n.Ready, n.Unmet = false, []talos.Unmet{{Name: "nodeReady", Reason: "no"}, {Name: "network", Reason: "waiting on: connectivity"}}
			},
			want: "False NotHealthy: Network: waiting on: connectivity",
		},
		"not ready, and nothing is said of why": {
			change: func(n *talos.Node) { n.Ready = false },
			want:   "False NotHealthy: The node is not ready",
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			node := wellNode()
			test.change(&node)

			got := talosHealth(node, test.othersReady)
			if diff := cmp.Diff(test.want, string(got.Status)+" "+got.Reason+": "+got.Message); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A node that is out of reach changes nothing until the grace period is over.
//
// contract: a node out of reach changes no condition within the grace period.
func TestGrace(t *testing.T) {
	r := &Reconciler{GracePeriod: time.Minute}
	before := &metav1.Condition{Type: "X", Status: metav1.ConditionTrue, Reason: controlplanev1.MachineHealthyReason}
	never := &metav1.Condition{Type: "X", Status: metav1.ConditionUnknown, Reason: controlplanev1.MachineNotInspectedReason}
	now := unknown("X", controlplanev1.MachineNotInspectedReason, "Machine cp-1: connection refused")
	bad := no("X", controlplanev1.MachineNotHealthyReason, "it is ill")

	tests := map[string]struct {
		now    metav1.Condition
		before *metav1.Condition
		silent time.Duration
		want   string
	}{
		"an answer counts at once":        {bad, before, 0, "False NotHealthy"},
		"silent for a while":              {now, before, time.Minute, "True Healthy"},
		"silent for too long":             {now, before, time.Minute + 1, "Unknown ConnectionDown"},
		"never answered, for a long time": {now, never, time.Hour, "Unknown NotInspected"},
		"never said anything":             {now, nil, 0, "Unknown NotInspected"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := r.graced(test.now, test.before, test.silent)
			if diff := cmp.Diff(test.want, string(got.Status)+" "+got.Reason); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// When the way to the nodes is lost the conditions stay for the grace period, and say then that nobody knows, and why.
//
// contract: a connection that is lost changes no condition within the grace period, and makes them unknown after it.
func TestNobodyCanAsk(t *testing.T) {
	const why = "cluster prod: spec.acceptedCAsSecretRef has no certificates"

	begin := time.Unix(1000, 0)
	r := &Reconciler{GracePeriod: time.Minute}
	p := newMemory().of(types.NamespacedName{Name: "cp"}, "plane")

	stored := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "cp-1", UID: "one"}}
	conditions.Set(stored, yes(controlplanev1.MachineTalosHealthyCondition, controlplanev1.MachineHealthyReason, ""))

	judged := func(after time.Duration, way nodes, disconnected string) string {
		m := &machine{object: stored.DeepCopy(), stored: stored.DeepCopy()}
		r.judge(&observation{
			machines: []*machine{m}, plane: p, nodes: way, disconnected: disconnected,
			snapshot: rollout.Snapshot{Now: begin.Add(after), Machines: []rollout.Machine{{Name: "cp-1", Ours: true}}},
		})

		c := conditions.Get(m.object, controlplanev1.MachineTalosHealthyCondition)

		return string(c.Status) + " " + c.Reason + ": " + c.Message
	}

	well, lost := "True Healthy: ", "Unknown ConnectionDown: The nodes cannot be asked: "+why

	for i, step := range []struct {
		after        time.Duration
		way          nodes
		disconnected string
		want         string
	}{
		{0, nil, why, well},
		{time.Minute, nil, why, well},
		{time.Minute + 1, nil, why, lost},
		{2 * time.Minute, answers{}, "", well}, // to be asked in this very reconcile
		{3 * time.Minute, nil, why, well},
		{4*time.Minute + 1, nil, why, lost},
	} {
		if diff := cmp.Diff(step.want, judged(step.after, step.way, step.disconnected)); diff != "" {
			t.Errorf("step %d: %s", i, diff)
		}
	}
}

// Another host name than the TalosConfig asks for is told, and is no fault.
func TestHostnameIsNoted(t *testing.T) {
	tests := map[string]struct {
		source             bootstrapv1.HostnameSource
		machine, node, say string
	}{
		"as it is wanted":           {bootstrapv1.HostnameSourceMachineName, "cp-1", "cp-1", ""},
		"in other letters":          {bootstrapv1.HostnameSourceMachineName, "cp-1", "CP-1", ""},
		"without the domain":        {bootstrapv1.HostnameSourceMachineName, "cp-1.example", "cp-1", ""},
		"not known":                 {bootstrapv1.HostnameSourceMachineName, "cp-1", "", ""},
		"left to Talos":             {bootstrapv1.HostnameSourceAutomatic, "cp-1", "talos-x", ""},
		"not said, left to Talos":   {"", "cp-1", "talos-x", ""},
		"another than is wanted":    {bootstrapv1.HostnameSourceMachineName, "cp-1", "talos-x", "The host name is talos-x, and not that of the Machine"},
		"only the first part of it": {bootstrapv1.HostnameSourceMachineName, "cp-1", "cp", "The host name is cp, and not that of the Machine"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			node := wellNode()
			node.Hostname = test.node

			spec := &bootstrapv1.TalosConfigSpec{Hostname: bootstrapv1.HostnameSpec{Source: test.source}}
			all := []metav1.Condition{talosHealth(node, true)}
			noteHostname(all, misnamed(spec, test.machine, node))

			if all[0].Status != metav1.ConditionTrue || !strings.HasPrefix(all[0].Message, test.say) || (test.say == "") != (all[0].Message == "") {
				t.Errorf("%s: %q", all[0].Status, all[0].Message)
			}
		})
	}
}
