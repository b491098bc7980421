// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/rollout"
)

const (
	// What a decision may take for 1,000 Machines, in milliseconds.
	maxPlan = 20

	// What four times the Machines may take: four times as long, and half as much again for what grows with them in the cache.
	planGrowth    = 4
	maxPlanGrowth = 6

	// Members of the measured control plane: more than anybody should have.
	planMembers = 7
)

func measurePlan(_ context.Context, s sizes) ([]result, error) {
	some, err := plans(s.planMachines, s.planRounds)
	if err != nil {
		return nil, err
	}

	many, err := plans(planGrowth*s.planMachines, s.planRounds)
	if err != nil {
		return nil, err
	}

	name := fmt.Sprintf("plan for %d Machines", s.planMachines)

	return []result{
		limited(name, float64(some)/float64(time.Millisecond), millis, maxPlan, fmt.Sprintf("%v, median of %d", some.Round(time.Microsecond), s.planRounds)),
		limited(name+", growth", float64(many)/float64(some), times, maxPlanGrowth, fmt.Sprintf("%v for %d", many.Round(time.Microsecond), planGrowth*s.planMachines)),
	}, nil
}

// plans is the median time of decisions about a control plane in which every machine has to be replaced.
func plans(machines, rounds int) (time.Duration, error) {
	snapshot := planSnapshot(machines)
	took := make([]time.Duration, 0, rounds)

	for range rounds {
		begin := time.Now()
		decision := rollout.Plan(snapshot)
		took = append(took, time.Since(begin))

		if decision.Reason != controlplanev1.PlanRollingOutReason {
			return 0, fmt.Errorf("the decision is %s: %s", decision.Reason, decision.Message)
		}
	}

	return median(took), nil
}

func planSnapshot(machines int) rollout.Snapshot {
	members := make([]etcd.Member, 0, planMembers)
	for i := range planMembers {
		members = append(members, etcd.Member{ID: etcd.MemberID(i + 1), Name: planName(i), PeerURLs: []string{"https://" + planAddress(i) + ":2380"}})
	}

	replicas := int32(machines)
	record := rollout.BootstrapMark{Set: true, Record: rollout.BootstrapRecord{Machine: planName(0), Done: true}}
	snapshot := rollout.Snapshot{
		Now:     time.Now(),
		Cluster: &rollout.Cluster{Name: "plan", InfrastructureProvisioned: true, Endpoint: true, FailureDomains: []string{"a", "b", "c"}},
		ControlPlane: rollout.ControlPlane{
			Name: "plan", Initialized: true, Bootstrap: record, BundleBootstrap: record,
			Spec: controlplanev1.TalosControlPlaneSpec{Replicas: &replicas, Version: "v1.36.1", Rollout: controlplanev1.RolloutSpec{
				Strategy: controlplanev1.RolloutStrategy{Type: controlplanev1.RollingUpdateRollout},
			}},
		},
		Nodes: rollout.Nodes{Known: true},
	}

	for i := range machines {
		snapshot.Machines = append(snapshot.Machines, planMachine(i, members))
	}

	return snapshot
}

func planMachine(i int, members []etcd.Member) rollout.Machine {
	machine := rollout.Machine{
		Name: planName(i), NodeName: planName(i), Created: time.Unix(int64(i), 0), Ours: true, Hook: true,
		FailureDomain: string(rune('a' + i%3)), Version: "v1.35.4", Addresses: []string{planAddress(i)}, HadAddress: true, AddressRecorded: true,
		Differences: []rollout.Difference{{Field: "version", Message: "Version v1.35.4, v1.36.1 required", InPlace: true}},
		Etcd:        etcd.View{Answered: true, Data: etcd.DataAbsent},
	}

	for _, name := range []string{
		controlplanev1.MachineAPIServerPodHealthyCondition, controlplanev1.MachineControllerManagerPodHealthyCondition,
		controlplanev1.MachineSchedulerPodHealthyCondition, controlplanev1.MachineEtcdMemberHealthyCondition, controlplanev1.MachineTalosHealthyCondition,
	} {
		machine.Conditions = append(machine.Conditions, metav1.Condition{Type: name, Status: metav1.ConditionTrue})
	}

	if i < len(members) {
		machine.RecordedMembers = []etcd.MemberID{members[i].ID}
		machine.Etcd = etcd.View{Answered: true, Data: etcd.DataPresent, Self: members[i].ID, Members: members, Leader: 1, Applied: 1000}
	}

	return machine
}

func planName(i int) string { return fmt.Sprintf("cp-%05d", i) }

func planAddress(i int) string { return fmt.Sprintf("10.%d.%d.1", i/256, i%256) }
