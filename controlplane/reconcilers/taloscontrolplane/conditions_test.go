// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/rollout"
)

// wellPlane is a control plane of three machines, well in every way.
func wellPlane() *observation {
	seen := &observation{controlPlane: planeWith(nil), clusterName: "prod", bundle: &corev1.Secret{}}
	seen.controlPlane.Spec.Replicas = new(int32(3))
	seen.snapshot = rollout.Snapshot{
		Now: time.Unix(1000, 0), Cluster: &rollout.Cluster{Name: "prod"}, ControlPlane: rollout.ControlPlane{Initialized: true, Spec: seen.controlPlane.Spec},
	}

	var members []etcd.Member
	for i := 1; i <= 3; i++ {
		members = append(members, etcd.Member{
			ID: etcd.MemberID(i), Name: fmt.Sprintf("cp-%d", i), PeerURLs: []string{fmt.Sprintf("https://10.0.0.%d:2380", i)},
		})
	}

	for i := 1; i <= 3; i++ {
		name := fmt.Sprintf("cp-%d", i)

		object := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.MachineSpec{ProviderID: "sim:///" + name, Version: "v1.36.1"}}
		for _, gate := range readinessGates {
			conditions.Set(object, yes(gate.ConditionType, controlplanev1.MachineHealthyReason, ""))
		}

		conditions.Set(object, yes(controlplanev1.MachineUpToDateCondition, controlplanev1.MachineUpToDateReason, ""))

		seen.machines = append(seen.machines, &machine{object: object, stored: object.DeepCopy()})
		seen.snapshot.Machines = append(seen.snapshot.Machines, rollout.Machine{
			Name: name, Ours: true, NodeName: name, Addresses: []string{fmt.Sprintf("10.0.0.%d", i)}, RecordedMembers: []etcd.MemberID{etcd.MemberID(i)},
			Etcd: etcd.View{Answered: true, Data: etcd.DataPresent, Self: etcd.MemberID(i), Leader: 1, Applied: 10, Members: members},
		})
	}

	return seen
}

// says sets a condition of some machines.
func says(condition string, status metav1.ConditionStatus, message string, machines ...int) func(*observation) {
	return func(seen *observation) {
		for _, i := range machines {
			conditions.Set(seen.machines[i-1].object, metav1.Condition{Type: condition, Status: status, Reason: "X", Message: message})
		}
	}
}

// members changes the member list, as every node has it.
func members(change func([]etcd.Member)) func(*observation) {
	return func(seen *observation) {
		for i := range seen.snapshot.Machines {
			view := &seen.snapshot.Machines[i].Etcd
			view.Members = append([]etcd.Member(nil), view.Members...)
			change(view.Members)
		}
	}
}

func both(changes ...func(*observation)) func(*observation) {
	return func(seen *observation) {
		for _, change := range changes {
			change(seen)
		}
	}
}

// Every reason of the conditions of a control plane is reached, and comes back from what is better or worse: none stays for good that was
// true once.
//
// contract: a control plane is available as long as etcd has a quorum, one machine serves and the certificates are there.
func TestConditions(t *testing.T) {
	const (
		available  = controlplanev1.AvailableCondition
		member     = controlplanev1.MachineEtcdMemberHealthyCondition
		server     = controlplanev1.MachineAPIServerPodHealthyCondition
		manager    = controlplanev1.MachineControllerManagerPodHealthyCondition
		members3   = controlplanev1.EtcdClusterHealthyCondition
		components = controlplanev1.ControlPlaneComponentsHealthyCondition
		not, maybe = metav1.ConditionFalse, metav1.ConditionUnknown
	)

	corrupt := etcd.Alarm{Member: 2, Type: "CORRUPT"}

	silence := func(seen *observation) {
		for i := range seen.snapshot.Machines {
			seen.snapshot.Machines[i].Etcd = etcd.View{Problem: "connection refused"}
		}
	}

	tests := map[string]struct {
		change    func(*observation)
		condition string
		want      string
	}{
		"well, available":        {both(), available, "True Available: "},
		"well, etcd":             {both(), members3, "True Healthy: "},
		"well, components":       {both(), components, "True Healthy: "},
		"one member is ill":      {says(member, not, "", 3), available, "True Available: "},
		"two members are ill":    {says(member, not, "", 2, 3), available, "False NotAvailable: 1 of 3 etcd members are healthy, and 2 are needed"},
		"two are not known":      {says(member, maybe, "", 2, 3), available, "Unknown AvailableUnknown: 1 of 3 etcd members are healthy, and 2 are needed"},
		"one machine serves":     {says(server, not, "", 2, 3), available, "True Available: "},
		"none serves as a whole": {both(says(server, not, "", 1, 2), says(manager, not, "", 3)), available, "False NotAvailable: No machine has API server"},
		"it may be served":       {both(says(server, not, "", 1, 2), says(manager, maybe, "", 3)), available, "Unknown AvailableUnknown: No machine has API server"},
		"it is being deleted":    {func(seen *observation) { seen.snapshot.ControlPlane.Deleting = true }, available, "False NotAvailable: The control plane is being deleted"},
		"a component is ill": {
			says(server, not, "kube-apiserver is not ready", 2), components, "False NotHealthy: Machine cp-2: kube-apiserver is not ready",
		},
		"a component is not known": {says(server, maybe, "", 2), components, "Unknown HealthUnknown: Not known of Machine cp-2"},
		"nothing is provisioned": {func(seen *observation) {
			for _, m := range seen.machines {
				m.object.Spec.ProviderID = ""
			}
		}, components, "Unknown HealthUnknown: No machine is provisioned"},
		"an alarm, told once": {both(says(member, not, "", 2), func(seen *observation) {
			for i := range seen.snapshot.Machines {
				seen.snapshot.Machines[i].Etcd.Alarms = []etcd.Alarm{corrupt}
			}
		}), members3, "False NotHealthy: Member 2 (Machine cp-2) has the alarm " + corrupt.String()},
		"two alarms of a member": {both(says(member, not, "", 2), func(seen *observation) {
			seen.snapshot.Machines[0].Etcd.Alarms = []etcd.Alarm{{Member: 2, Type: "NOSPACE"}, corrupt}
		}), members3, "False NotHealthy: Member 2 (Machine cp-2) has the alarm " + corrupt.String() + " and the alarm " + etcd.Alarm{Type: "NOSPACE"}.String()},
		"an alarm that is no member's": {func(seen *observation) {
			seen.snapshot.Machines[0].Etcd.Alarms = []etcd.Alarm{{Type: "CORRUPT"}}
		}, members3, "False NotHealthy: Etcd has the alarm CORRUPT (its members' data differ"},
		"a learner": {both(says(member, not, "", 3), members(func(all []etcd.Member) { all[2].Learner = true }), func(seen *observation) {
			seen.snapshot.Machines[2].Etcd.Members = nil
		}), members3, "False NotHealthy: Member 3 (Machine cp-3) is a learner, and has no vote before it has caught up"},
		"a member that has not started": {both(says(member, not, "", 3), members(func(all []etcd.Member) { all[2].Learner, all[2].Name = true, "" }), func(seen *observation) {
			seen.snapshot.Machines[2].Etcd = etcd.View{Answered: true, Data: etcd.DataAbsent, Problem: "service etcd is preparing"}
		}), members3, "False NotHealthy: Member 3 (Machine cp-3) has not started: service etcd is preparing"},
		"a member out of reach": {
			both(says(member, maybe, "", 3), unheard(3)), members3, "Unknown HealthUnknown: Member 3 (Machine cp-3) is on a node that tells nothing: no route to host",
		},
		"a member out of reach for a short while":    {unheard(3), members3, "True Healthy: "},
		"a member out of reach, which was ill":       {both(says(member, not, "", 3), unheard(3)), members3, "False NotHealthy: Member 3 (Machine cp-3) is on a node that tells nothing"},
		"a machine out of reach, and its components": {both(says(member, maybe, "", 3), says(server, maybe, "", 3), unheard(3)), components, "Unknown HealthUnknown: Not known of Machine cp-3"},
		"a machine out of reach, and what serves":    {both(says(member, maybe, "", 3), says(server, maybe, "", 3), unheard(3)), available, "True Available: "},
		"a member out of reach, and another that is ill": {
			both(says(member, maybe, "", 3), unheard(3), says(member, not, "", 2), func(seen *observation) {
				seen.snapshot.Machines[1].Etcd.Self, seen.snapshot.Machines[1].Etcd.Problem = 0, "service etcd has failed"
				seen.snapshot.Machines[1].Etcd.Members = nil
			}), members3, "Unknown InspectionFailed: ",
		},
		"a member out of reach, and one with an alarm": {both(says(member, maybe, "", 3), unheard(3), func(seen *observation) {
			seen.snapshot.Machines[0].Etcd.Alarms = []etcd.Alarm{{Member: 3, Type: "NOSPACE"}}
		}), members3, "False NotHealthy: Member 3 (Machine cp-3) has the alarm NOSPACE"},
		"a member on no Machine": {members(func(all []etcd.Member) {
			all[2] = etcd.Member{ID: 9, Name: "gone", PeerURLs: []string{"https://10.0.0.9:2380"}}
		}), members3, `False NotHealthy: Member 9 ("gone") is on no Machine`},
		"nobody answers":                   {both(says(member, maybe, "", 1, 2, 3), silence), members3, "Unknown InspectionFailed: No node reports etcd members"},
		"nobody answers for a short while": {both(silence, func(seen *observation) { conditions.Set(seen.controlPlane, yes(members3, "Healthy", "")) }), members3, "True Healthy: "},
		"two clusters": {func(seen *observation) {
			for i := range 3 {
				view := &seen.snapshot.Machines[i].Etcd
				view.Members, view.Leader = []etcd.Member{view.Members[i]}, view.Self
			}
		}, members3, "False NotHealthy: Two member lists have a quorum each"},
		"no bundle yet":          {func(seen *observation) { seen.bundle = nil }, controlplanev1.CertificatesAvailableCondition, "False NotCreated: "},
		"not initialized yet":    {uninitialized, controlplanev1.InitializedCondition, "False NotInitialized: "},
		"initialized":            {both(), controlplanev1.InitializedCondition, "True Initialized: "},
		"all as the spec has it": {both(), controlplanev1.RollingOutCondition, "False NotRollingOut: "},
		"the version comes first": {
			says(controlplanev1.MachineUpToDateCondition, not, "* Install.disk differs\n* Version v1.35.1, v1.36.1 required", 1, 2),
			controlplanev1.RollingOutCondition, "True RollingOut: Rolling out 2 not up-to-date replicas\n* Version v1.35.1, v1.36.1 required\n* Install.disk differs",
		},
		"too few":  {func(seen *observation) { seen.controlPlane.Spec.Replicas = new(int32(5)) }, controlplanev1.ScalingUpCondition, "True ScalingUp: Scaling up from 3 to 5 replicas is blocked because:\n* it waits"},
		"too many": {func(seen *observation) { seen.controlPlane.Spec.Replicas = new(int32(1)) }, controlplanev1.ScalingDownCondition, "True ScalingDown: Scaling down from 3 to 1 replicas"},
		"unhealthy, and to be remediated": {
			both(says(clusterv1.MachineHealthCheckSucceededCondition, not, "", 2), says(controlplanev1.MachineOwnerRemediatedCondition, not, "it waits for etcd", 2)),
			controlplanev1.RemediatingCondition, "True Remediating: Machine cp-2: it waits for etcd",
		},
		"unhealthy, and left alone": {
			says(clusterv1.MachineHealthCheckSucceededCondition, not, "", 2), controlplanev1.RemediatingCondition, "False NotRemediating: Machine cp-2 not healthy",
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			seen := wellPlane()
			test.change(seen)
			(&Reconciler{}).setConditions(t.Context(), seen, rollout.Decision{Action: rollout.Wait{}, Message: "it waits"})

			got := conditions.Get(seen.controlPlane, test.condition)
			if text := string(got.Status) + " " + got.Reason + ": " + got.Message; !strings.HasPrefix(text, test.want) || strings.HasSuffix(test.want, ": ") && text != test.want && got.Status == metav1.ConditionTrue {
				t.Errorf("%s\nwant %s", text, test.want)
			}
		})
	}
}

// unheard takes away what the nodes of some machines have said.
func unheard(machines ...int) func(*observation) {
	return func(seen *observation) {
		for _, i := range machines {
			seen.snapshot.Machines[i-1].Etcd = etcd.View{Problem: "no route to host"}
		}
	}
}

// uninitialized is a control plane of which nothing says that its API server has ever answered.
func uninitialized(seen *observation) {
	seen.snapshot.ControlPlane.Initialized = false
	for i := range seen.snapshot.Machines {
		seen.snapshot.Machines[i].NodeName = ""
	}
}

// That the API server has answered once is found again after everything in status is lost, by each of its traces.
//
// contract: status.initialization.controlPlaneInitialized comes back after a move, and is never taken back.
func TestInitializedIsFoundAgain(t *testing.T) {
	done := rollout.BootstrapMark{Set: true, Record: rollout.BootstrapRecord{Machine: "cp-1", Done: true}}

	tests := map[string]struct {
		change func(*observation)
		want   bool
	}{
		"no trace":                        {both(), false},
		"etcd was bootstrapped, no more":  {func(seen *observation) { seen.snapshot.ControlPlane.Bootstrap.Record.Machine = "cp-1" }, false},
		"the record on the control plane": {func(seen *observation) { seen.snapshot.ControlPlane.Bootstrap = done }, true},
		"the record on the bundle":        {func(seen *observation) { seen.snapshot.ControlPlane.BundleBootstrap = done }, true},
		"a Machine with a Node":           {func(seen *observation) { seen.snapshot.Machines[1].NodeName = "cp-2" }, true},
		"a Machine with a Node, that was let go": {func(seen *observation) {
			m := &seen.snapshot.Machines[1]
			m.NodeName, m.Hook, m.Deletion = "cp-2", false, &rollout.Deletion{}
		}, false},
		"a Machine with a Node, that leaves": {func(seen *observation) {
			m := &seen.snapshot.Machines[1]
			m.NodeName, m.Hook, m.Deletion = "cp-2", true, &rollout.Deletion{}
		}, true},
		"its own status, or the Cluster's": {func(seen *observation) { seen.snapshot.ControlPlane.Initialized = true }, true},
		"its status of before": {func(seen *observation) {
			seen.controlPlane.Status.Initialization.ControlPlaneInitialized = new(true)
		}, true},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			seen := wellPlane()
			uninitialized(seen)
			test.change(seen)

			(&Reconciler{}).setStatus(t.Context(), seen, rollout.Decision{Action: rollout.Rest{}}, nil)

			if got := seen.controlPlane.Status.Initialization.ControlPlaneInitialized; (got != nil) != test.want || got != nil && !*got {
				t.Errorf("initialized: %v", got)
			}
		})
	}
}

// contract: counters are written also when they are zero, versions only when there are some.
func TestStatusOfNothing(t *testing.T) {
	seen := wellPlane()
	seen.machines, seen.snapshot.Machines = nil, nil

	(&Reconciler{}).setStatus(t.Context(), seen, rollout.Decision{Action: rollout.Wait{}, Reason: "X", Message: "it waits"}, nil)

	status := seen.controlPlane.Status
	for name, count := range map[string]*int32{
		"replicas": status.Replicas, "ready": status.ReadyReplicas, "available": status.AvailableReplicas, "up to date": status.UpToDateReplicas,
	} {
		if count == nil || *count != 0 {
			t.Errorf("%s: %v", name, count)
		}
	}

	if status.Versions != nil || status.Version != "" || !strings.Contains(status.Selector, "prod") {
		t.Errorf("%v %q %q", status.Versions, status.Version, status.Selector)
	}
}

// What is done for several machines is done for each, and every fault is told. A conflict is the whole's: all of them are looked at again.
func TestEveryFaultIsTold(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{}, "b", errors.New("changed"))
	fails := map[string]error{"a": errors.New("a is refused"), "c": errors.New("c is refused")}

	var done []string

	err := each([]string{"a", "b", "c"}, func(name string) error {
		done = append(done, name)

		return fails[name]
	})
	if len(done) != 3 || !errors.Is(err, fails["a"]) || !errors.Is(err, fails["c"]) {
		t.Errorf("%v: %v", done, err)
	}

	fails["b"] = conflict

	if err := each([]string{"a", "b", "c"}, func(name string) error { return fails[name] }); !apierrors.IsConflict(err) {
		t.Errorf("a conflict is not told as one: %v", err)
	}

	seen := wellPlane()
	(&Reconciler{}).setStatus(t.Context(), seen, rollout.Decision{Action: rollout.Rest{}, Message: "All is well"}, errors.Join(fails["a"], fails["c"]))

	for _, each := range []string{"a is refused", "c is refused"} {
		if !strings.Contains(seen.controlPlane.Status.Plan.Message, each) {
			t.Errorf("the plan does not say that %s: %s", each, seen.controlPlane.Status.Plan.Message)
		}
	}
}

// contract: UpToDate of a Machine is set by the control plane, with a line for each difference.
func TestUpToDate(t *testing.T) {
	kubelet := func(version string) *clusterv1.Machine {
		m := &clusterv1.Machine{Spec: clusterv1.MachineSpec{Version: "v1.36.1"}, Status: clusterv1.MachineStatus{NodeInfo: &corev1.NodeSystemInfo{}}}
		m.Status.NodeInfo.KubeletVersion = version

		return m
	}

	tests := map[string]struct {
		machine     *clusterv1.Machine
		differences []rollout.Difference
		want        string
	}{
		"as the spec has it":           {kubelet("v1.36.1"), nil, "True UpToDate: "},
		"no Node yet":                  {&clusterv1.Machine{Spec: clusterv1.MachineSpec{Version: "v1.36.1"}}, nil, "True UpToDate: "},
		"a kubelet of another version": {kubelet("v1.36.0"), nil, "False Updating: * Kubelet has version v1.36.0, v1.36.1 required"},
		"other than the spec has it": {
			kubelet("v1.36.1"),
			[]rollout.Difference{{Message: "Version v1.36.1, v1.36.2 required"}, {Message: "Install.disk differs"}},
			"False NotUpToDate: * Version v1.36.1, v1.36.2 required\n* Install.disk differs",
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := upToDate(test.machine, test.differences)
			if text := string(got.Status) + " " + got.Reason + ": " + got.Message; text != test.want {
				t.Errorf("%s\nwant %s", text, test.want)
			}
		})
	}
}
