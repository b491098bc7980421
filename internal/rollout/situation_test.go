// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/rollout"
)

// everywhere changes member 3 in the list of every node.
func everywhere(s *rollout.Snapshot, change func(*etcd.Member)) {
	for i := range s.Machines {
		members := slices.Clone(s.Machines[i].Etcd.Members)
		for j := range members {
			if members[j].ID == 3 {
				change(&members[j])
			}
		}

		s.Machines[i].Etcd.Members = members
	}
}

// unanswered is cp03 whose node gives no answer.
func unanswered(problem string) func(*rollout.Snapshot) {
	return func(s *rollout.Snapshot) {
		s.Machines[2].Etcd, s.Machines[2].Conditions = etcd.View{Problem: problem}, unknown
	}
}

// unmade is cp03 that has no machine yet, of which Cluster API says why. The node is told to have no address.
func unmade(condition, message string) func(*rollout.Snapshot) {
	return func(s *rollout.Snapshot) {
		s.Machines[2] = rollout.Machine{
			Name: "cp03", Ours: true, Hook: true, Created: s.Now, Etcd: etcd.View{Problem: "it has no address yet (does the guest agent run?)"},
			Conditions: []metav1.Condition{{Type: condition, Status: metav1.ConditionFalse, Message: message}},
		}
		for i := range 2 {
			s.Machines[i].Etcd.Members = s.Machines[i].Etcd.Members[:2]
		}
	}
}

// situations are what control planes get into. All are about cp03 of three.
var situations = map[string]func(*rollout.Snapshot){
	"all is well": func(*rollout.Snapshot) {},
	"its node has another hostname": func(s *rollout.Snapshot) {
		everywhere(s, func(m *etcd.Member) { m.Name = "talos-w9x-yz1" })
		s.Machines[2].NodeName = "talos-w9x-yz1"
	},
	"its node has another hostname, is silent, and its member was never noted down": func(s *rollout.Snapshot) {
		unanswered("no answer within 10s")(s)
		everywhere(s, func(m *etcd.Member) { m.Name = "talos-w9x-yz1" })
		s.Machines[2].RecordedMembers, s.Machines[2].AddressRecorded, s.Machines[2].NodeName = nil, true, "kube-3"
	},
	"a VIP is among its addresses, and among those of another": func(s *rollout.Snapshot) {
		s.Machines[0].Addresses = append(s.Machines[0].Addresses, "10.0.0.100")
		s.Machines[2].Addresses = append(s.Machines[2].Addresses, "10.0.0.100")
	},
	"another machine's node answers at its address": unanswered("the node that answers at 10.0.0.3 is that of another machine"),
	"its node has the certificate of another authority": unanswered(
		"the node that answers has a certificate of another authority: it is not a node of this cluster"),
	"it is silent, and its member has only its address": func(s *rollout.Snapshot) {
		unanswered("no answer within 10s")(s)
		everywhere(s, func(m *etcd.Member) { m.Name = "talos-w9x-yz1" })
		s.Machines[2].RecordedMembers, s.Machines[2].AddressRecorded, s.Machines[2].NodeName = nil, true, ""
	},
	"it has no address any more": func(s *rollout.Snapshot) {
		s.Machines[2].Etcd, s.Machines[2].Conditions, s.Machines[2].Addresses = etcd.View{Problem: "the Machine has no address"}, unknown, nil
	},
	"it never had an address": func(s *rollout.Snapshot) {
		s.Machines[2] = rollout.Machine{Name: "cp03", Ours: true, Hook: true, Created: s.Now}
		for i := range 2 {
			s.Machines[i].Etcd.Members = s.Machines[i].Etcd.Members[:2]
		}
	},
	"its config does not render": unmade(clusterv1.MachineBootstrapConfigReadyCondition, `* TalosConfigPatch registry: Secret "pull"
  does not exist`),
	"its infrastructure cannot be made": unmade(clusterv1.MachineInfrastructureReadyCondition, "the quota of virtual machines is used up"),
	"its member is a learner": func(s *rollout.Snapshot) {
		everywhere(s, func(m *etcd.Member) { m.Learner = true })
		s.Machines[2].Etcd.Members, s.Machines[2].Conditions, s.Machines[2].NodeName = nil, unknown, ""
	},
	"its member has not started": func(s *rollout.Snapshot) {
		everywhere(s, func(m *etcd.Member) { m.Learner, m.Name = true, "" })
		s.Machines[2].Etcd = etcd.View{Answered: true, Data: etcd.DataAbsent}
		s.Machines[2].Conditions, s.Machines[2].NodeName, s.Machines[2].RecordedMembers, s.Machines[2].AddressRecorded = unknown, "", nil, true
	},
	"its member has an alarm, which every node repeats": func(s *rollout.Snapshot) {
		for i := range s.Machines {
			s.Machines[i].Etcd.Alarms = []etcd.Alarm{{Member: 3, Type: "NOSPACE"}}
			s.Machines[i].Etcd.Errors = []string{"memberID:3 alarm:NOSPACE "}
		}
	},
	"its etcd reports an error that is no alarm": func(s *rollout.Snapshot) {
		s.Machines[2].Etcd.Errors = []string{"etcdserver: some day's new error"}
	},
	"its Talos waits for what it does not have": func(s *rollout.Snapshot) { ails(s, 2) },
	"its Talos waits for what it does not have, and the spec is another by now": func(s *rollout.Snapshot) {
		ails(s, 2)
		outdated(s, 2)
	},
	"its clock is wrong": unanswered("the node takes our certificate for not valid yet or expired: its clock and ours differ"),
	"its node is slow":   unanswered("connected, and no answer within 10s"),
	"its member is far behind": func(s *rollout.Snapshot) {
		for i := range 2 {
			s.Machines[i].Etcd.Applied = 250_000
		}
	},
	"its member is cut off from the others": func(s *rollout.Snapshot) {
		s.Machines[2].Etcd = etcd.View{Answered: true, Data: etcd.DataPresent, Self: 3, Applied: 100, Errors: []string{"etcdserver: no leader"}}
		s.Machines[2].Conditions = unknown
	},
	"its etcd does not run": func(s *rollout.Snapshot) {
		s.Machines[2].Etcd = etcd.View{Answered: true, Data: etcd.DataPresent, Problem: "service etcd is Failed"}
		s.Machines[2].Conditions = unknown
	},
	"it lost its data and runs another member": func(s *rollout.Snapshot) {
		for i := range s.Machines {
			s.Machines[i].Etcd.Members = append(slices.Clone(s.Machines[i].Etcd.Members), etcd.Member{ID: 4, Name: "cp03", PeerURLs: []string{"https://10.0.1.3:2380"}})
		}

		s.Machines[2].Etcd.Self, s.Machines[2].Addresses, s.Machines[2].RecordedMembers = 4, []string{"10.0.1.3"}, []etcd.MemberID{3, 4}
	},
	"it is new and has the address of a member that no machine has": func(s *rollout.Snapshot) {
		everywhere(s, func(m *etcd.Member) { m.Name = "gone" })
		s.Machines[2].Etcd = etcd.View{Answered: true, Data: etcd.DataAbsent}
		s.Machines[2].Conditions, s.Machines[2].NodeName, s.Machines[2].RecordedMembers, s.Machines[2].AddressRecorded = unknown, "", nil, true
	},
}

// TestSituations tells what is said of cp03's member and what is decided, when nothing is wanted, when two more machines are, and when a user
// deletes cp03; and what is said is the same in whatever order the machines are read.
func TestSituations(t *testing.T) {
	t.Parallel()

	wanted := map[string]func(*rollout.Snapshot){
		"1. nothing is wanted":       func(*rollout.Snapshot) {},
		"2. two more machines":       func(s *rollout.Snapshot) { s.ControlPlane.Spec.Replicas = ptr.To[int32](5) },
		"3. a user has deleted cp03": func(s *rollout.Snapshot) { leaving(s, 2, stages[3]) },
	}

	var b strings.Builder

	for _, name := range slices.Sorted(maps.Keys(situations)) {
		fmt.Fprintf(&b, "## %s\n", name)

		s := settled(3)
		situations[name](&s)

		cluster := rollout.EtcdOf(s)
		for _, m := range cluster.Members {
			if m.ID >= 3 || !m.Healthy() {
				fmt.Fprintf(&b, "etcd member %s %s\n", m, word(m))
			}
		}

		for _, want := range slices.Sorted(maps.Keys(wanted)) {
			s = settled(3)
			situations[name](&s)
			wanted[want](&s)

			d := rollout.Plan(s)
			fmt.Fprintf(&b, "%s: %s %s: %s\n", want, rollout.Name(d.Action), d.Reason, d.Message)

			if d.RetryAfter <= 0 {
				t.Errorf("%s: %s: nobody looks again", name, want)
			}

			blind := s
			blind.Nodes = rollout.Nodes{}

			if again := rollout.Plan(blind); again.Message != d.Message && !rollout.NeedsNodes(s) {
				t.Errorf("%s: %s: %q, and without the Nodes, which nobody would read, %q", name, want, d.Message, again.Message)
			}

			slices.Reverse(s.Machines)

			if again := rollout.Plan(s); again.Message != d.Message {
				t.Errorf("%s: %s: %q, and in another order %q", name, want, d.Message, again.Message)
			}
		}

		b.WriteString("\n")
	}

	golden(t, "situations.golden", b.String())
}

func word(m etcd.MemberState) string {
	if m.Healthy() {
		return "is well"
	}

	return m.Problem
}

// TestNodesAreReadForOneThatGoes has a member that matches the Machine which goes by its address only be removed: nobody else can tell whose it is.
func TestNodesAreReadForOneThatGoes(t *testing.T) {
	t.Parallel()

	s := settled(3)
	if rollout.NeedsNodes(s) {
		t.Error("the Nodes are read while all is well")
	}

	situations["it is silent, and its member has only its address"](&s)
	leaving(&s, 2, stages[3])

	if orphans := rollout.Orphans(s); len(orphans) > 0 {
		t.Fatalf("members %v are orphans: they match no Machine", orphans)
	}

	if !rollout.NeedsNodes(s) {
		t.Error("the Nodes are not read")
	}

	if d, want := rollout.Plan(s), (rollout.RemoveEtcdMember{Machine: "cp03", Member: 3, Through: "cp02"}); d.Action != want {
		t.Errorf("with the Nodes: %#v: %s", d.Action, d.Message)
	}

	s.Nodes = rollout.Nodes{}

	if d := rollout.Plan(s); d.Reason != controlplanev1.PlanEtcdUnaccountedReason {
		t.Errorf("without the Nodes: %s: %s", d.Reason, d.Message)
	}
}

// TestOneAlarmIsOneMembers has an alarm at one member, as etcd's Status repeats it at each, cost one member and no more.
func TestOneAlarmIsOneMembers(t *testing.T) {
	t.Parallel()

	s := settled(3)
	situations["its member has an alarm, which every node repeats"](&s)

	if cluster := rollout.EtcdOf(s); cluster.Healthy() != 2 || !cluster.HasQuorum().OK {
		t.Errorf("%d members are healthy, want 2: %s", cluster.Healthy(), cluster.HasQuorum().Message)
	}

	leaving(&s, 2, stages[3])

	if d := rollout.Plan(s); d.Reason != controlplanev1.PlanLeavingEtcdReason {
		t.Errorf("its Machine is deleted: %s: %s", d.Reason, d.Message)
	}
}
