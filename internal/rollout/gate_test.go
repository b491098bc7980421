// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/rollout"
)

// gateCase is a change to a snapshot in which a gate is open, and what the gate says then.
type gateCase struct {
	change func(*rollout.Snapshot)
	want   string // empty: it stays open
}

const (
	deferred = controlplanev1.MachineRemediationDeferredReason
	cannot   = controlplanev1.MachineCannotBeRemediatedReason
)

func silent(i ...int) func(*rollout.Snapshot) {
	return func(s *rollout.Snapshot) {
		for _, at := range i {
			s.Machines[at].Etcd = etcd.View{Problem: "no answer"}
		}
	}
}

func leaving(s *rollout.Snapshot, i int, stage string) {
	s.Machines[i].Deletion = &rollout.Deletion{Since: s.Now, Stage: stage, AtHook: stage == stages[3]}
}

func uninitialized(s *rollout.Snapshot) {
	s.ControlPlane.Initialized, s.ControlPlane.Bootstrap, s.ControlPlane.BundleBootstrap = false, rollout.BootstrapMark{}, rollout.BootstrapMark{}
	for i := range s.Machines {
		s.Machines[i].NodeName = ""
	}
}

var (
	gone    = func(s *rollout.Snapshot) { s.Cluster.Deleting = true }
	ahead   = func(s *rollout.Snapshot) { s.Cluster.TopologyVersion = "v1.37.0" }
	operate = func(s *rollout.Snapshot) { s.Machines[1].Operation = "reboot" }
	goes    = func(s *rollout.Snapshot) { leaving(s, 0, stages[1]) }
	unwell  = func(s *rollout.Snapshot) { s.Machines[1].Conditions = unknown }
)

var before = map[string]gateCase{
	"A cluster that is being deleted gets no new machine.":     {gone, controlplanev1.PlanClusterDeletingReason},
	"A machine needs the cluster's network and load balancer.": {func(s *rollout.Snapshot) { s.Cluster.InfrastructureProvisioned = false }, controlplanev1.PlanWaitingForInfrastructureReason},
	"A machine config has the endpoint in it.":                 {func(s *rollout.Snapshot) { s.Cluster.Endpoint = false }, controlplanev1.PlanWaitingForEndpointReason},
	"A machine config has the cluster's secrets in it.":        {func(s *rollout.Snapshot) { s.ControlPlane.SecretsProblem = "no bundle" }, controlplanev1.PlanWaitingForSecretsReason},
}

// gateCases close each gate, by list and reason. After a bar is what leaves it open all the same.
var gateCases = map[string]map[string]gateCase{
	"first machine": before,
	"creation": with(before, map[string]gateCase{
		"A topology that is about to say another version would have the machine replaced at once.":                                     {ahead, controlplanev1.PlanWaitingForTopologyReason},
		"A topology that is about to say another version would have the machine replaced at once. | it is at the step of this version": {func(s *rollout.Snapshot) { ahead(s); s.Cluster.UpgradeStep = "v1.36.1" }, ""},
		"One machine at a time: none is made while one goes, unless it is the last, which goes only when another is there.":            {goes, controlplanev1.PlanMachineDeletingReason},
		"One machine at a time: none is made while one goes, unless it is the last, which goes only when another is there. | the last": {func(s *rollout.Snapshot) {
			*s = settled(1)
			leaving(s, 0, stages[3])
		}, ""},
		"An operation in place takes a node away for a while: no member joins meanwhile.":                                                              {operate, controlplanev1.PlanOperationRunningReason},
		"Every machine is up and well before another is made; to replace an unhealthy one it is enough that one has a whole Kubernetes control plane.": {unwell, controlplanev1.PlanMachineUnhealthyReason},
		"Every machine is up and well before another is made; to replace an unhealthy one it is enough that one has a whole Kubernetes control plane. | for one that is gone": {func(s *rollout.Snapshot) {
			unwell(s)
			s.ControlPlane.Remediation = &rollout.RemediationRecord{Machine: "gone"}
		}, ""},
		"Every machine is up and well before another is made; to replace an unhealthy one it is enough that one has a whole Kubernetes control plane. | the Talos of none is well": {func(s *rollout.Snapshot) {
			ails(s, 0, 1, 2, 3, 4)
			s.ControlPlane.Remediation = &rollout.RemediationRecord{Machine: "gone"}
		}, ""},
		"Every machine is up and well before another is made; to replace an unhealthy one it is enough that one has a whole Kubernetes control plane. | none has one": {func(s *rollout.Snapshot) {
			for i := range s.Machines {
				s.Machines[i].Conditions = unknown
			}

			s.ControlPlane.Remediation = &rollout.RemediationRecord{Machine: "gone"}
		}, controlplanev1.PlanMachineUnhealthyReason},
		"A member that never starts must not cost the quorum, and etcd takes none in before every voter is well.": {silent(1), controlplanev1.PlanEtcdQuorumAtRiskReason},
	}),
	"removal": {
		"A cluster that is being deleted is left to its deletion.":                                          {gone, controlplanev1.PlanClusterDeletingReason},
		"A topology that is about to say another version would have the next machine replaced for nothing.": {ahead, controlplanev1.PlanWaitingForTopologyReason},
		"One machine at a time.": {goes, controlplanev1.PlanMachineDeletingReason},
		"An operation in place takes a node away for a while: no other goes meanwhile.":                                {operate, controlplanev1.PlanOperationRunningReason},
		"The machines that stay carry the cluster: each has a node, and its conditions are true. Unknown is not true.": {unwell, controlplanev1.PlanMachineUnhealthyReason},
		"The members that stay must be a quorum.":                                                                      {silent(0, 1), controlplanev1.PlanEtcdQuorumAtRiskReason},
		"The members that stay must be a quorum. | the one that goes does not answer":                                  {silent(4), ""},
	},
	"remediation": {
		"A cluster that is being deleted is left to its deletion.":                                     {gone, deferred},
		"A topology that is about to say another version would have the replacement replaced at once.": {ahead, deferred},
		"A node that is rebooting for us is not ill.":                                                  {func(s *rollout.Snapshot) { s.Machines[4].Operation = "reboot" }, deferred},
		"A fault that comes back with every replacement is not mended by another.": {func(s *rollout.Snapshot) {
			s.ControlPlane.Spec.Remediation.MaxRetry = ptr.To[int32](1)
			s.Machines[4].RemediationFor = &rollout.RemediationRecord{Machine: "gone", Timestamp: s.Now.Add(-time.Minute), RetryCount: 1}
		}, cannot},
		"One machine at a time, but if those that go cannot for want of healthy members, one that has none to lose goes too.": {goes, deferred},
		"One machine at a time, but if those that go cannot for want of healthy members, one that has none to lose goes too. | that": {func(s *rollout.Snapshot) {
			silent(3)(s)
			leaving(s, 0, stages[3])
		}, ""},
		"One at a time also means that the machine in place of the last one is made first, unless etcd takes none in because of this one.": {func(s *rollout.Snapshot) {
			s.ControlPlane.Remediation = &rollout.RemediationRecord{Machine: "gone"}
			s.Machines[4].Etcd = settled(5).Machines[4].Etcd
		}, deferred},
		"One at a time also means that the machine in place of the last one is made first, unless etcd takes none in because of this one. | this one's is dead": {func(s *rollout.Snapshot) {
			s.ControlPlane.Remediation = &rollout.RemediationRecord{Machine: "gone"}
		}, ""},
		"Before the control plane is initialized, the machine that etcd is bootstrapped on, or may be, is all there is.": {func(s *rollout.Snapshot) {
			uninitialized(s)
			s.Machines[4].Etcd = etcd.View{Answered: true, Data: etcd.DataPresent}
		}, cannot},
		"Before the control plane is initialized, the machine that etcd is bootstrapped on, or may be, is all there is. | it may be": {func(s *rollout.Snapshot) {
			uninitialized(s)
			s.ControlPlane.Bootstrap = rollout.BootstrapMark{Set: true, Record: rollout.BootstrapRecord{Machine: "cp05"}}
		}, cannot},
		"Before the control plane is initialized, the machine that etcd is bootstrapped on, or may be, is all there is. | another": {uninitialized, ""},
		"The only machine has all the data.": {func(s *rollout.Snapshot) { s.Machines = s.Machines[4:] }, cannot},
		"A machine that is still coming up may be about to help, unless etcd does not take it in because of this one.": {func(s *rollout.Snapshot) {
			s.Machines[0].NodeName = ""
		}, deferred},
		"A machine that is still coming up may be about to help, unless etcd does not take it in because of this one. | it waits for etcd": {func(s *rollout.Snapshot) {
			s.Machines = append(s.Machines, rollout.Machine{Name: "cp06", Ours: true, Hook: true, Etcd: etcd.View{Answered: true, Data: etcd.DataAbsent}})
		}, ""},
		"Another machine must have a whole Kubernetes control plane, or no replacement can join.": {func(s *rollout.Snapshot) {
			for i := range s.Machines[:4] {
				s.Machines[i].Conditions = unknown
			}
		}, cannot},
		"The members that stay must be a quorum.":                     {silent(0, 1), deferred},
		"The members that stay must be a quorum. | it is well itself": {func(s *rollout.Snapshot) { silent(0, 1)(s); s.Machines[4].Etcd = settled(5).Machines[4].Etcd }, cannot},
	},
}

func with(some, more map[string]gateCase) map[string]gateCase {
	out := maps.Clone(some)
	maps.Copy(out, more)

	return out
}

// open is a snapshot in which all gates of a list are open.
func open(list string) (rollout.Snapshot, string) {
	s := settled(5)

	switch list {
	case "first machine":
		uninitialized(&s)
		s.Machines = nil

		return s, ""
	case "creation":
		return s, ""
	case "remediation":
		ill(&s.Machines[4])
	}

	return s, "cp05"
}

// TestEachGate closes each gate of the safety specification, and finds all of them open without a reason to be closed.
//
// contract: one operation at a time, and none before every machine has a Node and is well and the topology has settled.
func TestEachGate(t *testing.T) {
	t.Parallel()

	gates := rollout.Gates()
	delete(gates, "steps")

	for list, reasons := range gates {
		var unused []string
		for key := range gateCases[list] {
			if why, _, _ := strings.Cut(key, " | "); !slices.Contains(reasons, why) {
				unused = append(unused, key)
			}
		}

		if len(unused) > 0 {
			t.Errorf("%s has no gate for %s", list, strings.Join(unused, "; "))
		}

		for i, why := range reasons {
			t.Run(fmt.Sprintf("%s/%d", list, i+1), func(t *testing.T) {
				t.Parallel()

				s, machine := open(list)
				if reason := rollout.GateOf(list, i, s, machine); reason != "" {
					t.Errorf("%q: says %s, and nothing is wrong", why, reason)
				}

				closes := false

				for key, tc := range gateCases[list] {
					if of, _, _ := strings.Cut(key, " | "); of != why {
						continue
					}

					s, machine = open(list)
					tc.change(&s)

					if reason := rollout.GateOf(list, i, s, machine); reason != tc.want {
						t.Errorf("%q: says %q, want %q", key, reason, tc.want)
					}

					closes = closes || tc.want != ""
				}

				if !closes {
					t.Errorf("%q: nothing closes it", why)
				}
			})
		}
	}
}
