// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/prose"
)

// gate is a thing that must hold before an action. m is the machine that goes, nil for a creation.
type gate struct {
	// why says what the gate keeps from happening.
	why   string
	check func(p *planner, m *Machine) *Decision
}

// creation must hold before a machine is made.
var creation = []gate{
	{"A cluster that is being deleted gets no new machine.", clusterStays},
	{"A machine needs the cluster's network and load balancer.", infrastructureThere},
	{"A machine config has the endpoint in it.", endpointThere},
	{"A machine config has the cluster's secrets in it.", secretsThere},
	{"A topology that is about to say another version would have the machine replaced at once.", topologySettled},
	{"One machine at a time: none is made while one goes, unless it is the last, which goes only when another is there.", nobodyLeaves},
	{"An operation in place takes a node away for a while: no member joins meanwhile.", nothingOperates},
	{"Every machine is up and well before another is made; to replace an unhealthy one it is enough that one has a whole Kubernetes control plane.", othersWell},
	{"A member that never starts must not cost the quorum, and etcd takes none in before every voter is well.", memberMayJoin},
}

// first is what must hold before the first machine is made: there is nothing to be well yet.
var first = creation[:4]

// removal must hold before a machine is deleted because there are too many or it is not as the spec wants it.
var removal = []gate{
	{"A cluster that is being deleted is left to its deletion.", clusterStays},
	{"A topology that is about to say another version would have the next machine replaced for nothing.", topologySettled},
	{"One machine at a time.", nobodyLeaves},
	{"An operation in place takes a node away for a while: no other goes meanwhile.", nothingOperates},
	{"The machines that stay carry the cluster: each has a node, and its conditions are true. Unknown is not true.", othersWell},
	{"The members that stay must be a quorum.", memberMayLeave},
}

// Gates are the gates in their order, for documentation: what they are for, and a line of reason each.
func Gates() map[string][]string {
	reasons := func(gates []gate) []string {
		out := make([]string, 0, len(gates))
		for _, each := range gates {
			out = append(out, each.why)
		}

		return out
	}

	order := make([]string, 0, len(steps))
	for _, each := range steps {
		order = append(order, each.why)
	}

	repair := make([]string, 0, len(remediation))
	for _, each := range remediation {
		repair = append(repair, each.why)
	}

	return map[string][]string{
		"steps": order, "first machine": reasons(first), "creation": reasons(creation), "removal": reasons(removal), "remediation": repair,
	}
}

// pass is the first gate's no, or nil.
func (p *planner) pass(gates []gate, m *Machine) *Decision {
	for _, each := range gates {
		if d := each.check(p, m); d != nil {
			return d
		}
	}

	return nil
}

func clusterStays(p *planner, _ *Machine) *Decision {
	if p.Cluster.Deleting {
		return wait(controlplanev1.PlanClusterDeletingReason, "Cluster %s is being deleted", p.Cluster.Name)
	}

	return nil
}

func infrastructureThere(p *planner, _ *Machine) *Decision {
	if !p.Cluster.InfrastructureProvisioned {
		return wait(controlplanev1.PlanWaitingForInfrastructureReason, "The infrastructure of Cluster %s is not provisioned yet", p.Cluster.Name)
	}

	return nil
}

func endpointThere(p *planner, _ *Machine) *Decision {
	if !p.Cluster.Endpoint {
		return wait(controlplanev1.PlanWaitingForEndpointReason, "Cluster %s has no control-plane endpoint yet (spec.controlPlaneEndpoint)", p.Cluster.Name)
	}

	return nil
}

func secretsThere(p *planner, _ *Machine) *Decision {
	if problem := p.ControlPlane.SecretsProblem; problem != "" {
		return wait(controlplanev1.PlanWaitingForSecretsReason, "The cluster's secrets cannot be used: %s", problem)
	}

	return nil
}

func topologySettled(p *planner, _ *Machine) *Decision {
	topology, step, own := p.Cluster.TopologyVersion, p.Cluster.UpgradeStep, p.ControlPlane.Spec.Version
	if topology == "" || topology == own || step == own {
		return nil
	}

	if step != "" {
		topology = step
	}

	return wait(controlplanev1.PlanWaitingForTopologyReason, "The topology of Cluster %s is about to set version %s", p.Cluster.Name, topology)
}

func nobodyLeaves(p *planner, m *Machine) *Decision {
	if len(p.leaving) == 0 || (m == nil && p.lastMemberLeaves()) {
		return nil
	}

	return wait(controlplanev1.PlanMachineDeletingReason, "Machine %s is being deleted: %s", p.leaving[0].Name, p.leaving[0].stage())
}

// lastMemberLeaves is true when the only machine there is goes and waits for another to take its place in etcd.
func (p *planner) lastMemberLeaves() bool {
	if len(p.ours) != 1 || len(p.leaving) != 1 || !p.leaving[0].Deletion.AtHook {
		return false
	}

	members := p.etcd.MembersOf(p.leaving[0].Name)

	return len(members) == 1 && p.etcd.MayRemove(members[0].ID).Reason == etcd.LastMember
}

func nothingOperates(p *planner, _ *Machine) *Decision { return p.operates(nil) }

// operates is when an operation in place is running on a machine beside one.
func (p *planner) operates(beside *Machine) *Decision {
	for _, m := range p.ours {
		if m != beside && m.Operation != "" {
			return wait(controlplanev1.PlanOperationRunningReason, "An operation in place is running on Machine %s: %s", m.Name, m.Operation)
		}
	}

	return nil
}

// othersWell wants every machine well but the one that goes. While an unhealthy machine is being replaced, one that has a whole Kubernetes
// control plane is enough, as it was for the deletion of that machine: otherwise two faults at a time could never be mended. Whether a member
// may join is for etcd to say.
func othersWell(p *planner, m *Machine) *Decision {
	var unwell []string

	serve, reason := false, controlplanev1.PlanWaitingForMachineReason

	for _, other := range p.ours {
		if other == m {
			continue
		}

		serve = serve || other.componentsWell()

		if complaint := p.complaint(other, other.needs()); complaint != "" {
			unwell = append(unwell, complaint)

			if other.NodeName != "" {
				reason = controlplanev1.PlanMachineUnhealthyReason
			}
		}
	}

	if len(unwell) == 0 || (m == nil && p.replaces() != nil && serve) {
		return nil
	}

	return wait(reason, "%s", prose.InOrder(unwell))
}

func memberMayJoin(p *planner, _ *Machine) *Decision {
	if verdict := p.etcd.MayAdd(); !verdict.OK {
		return blockedByEtcd(verdict, "No machine is made")
	}

	return nil
}

// memberMayLeave asks about each member that may be the machine's.
func memberMayLeave(p *planner, m *Machine) *Decision {
	members := p.etcd.MembersOf(m.Name)
	if len(members) == 0 && !p.etcd.Accounted(m.Name) {
		members = p.etcd.Unowned()
	}

	for _, member := range members {
		if verdict := p.etcd.MayRemove(member.ID); !verdict.OK {
			return blockedByEtcd(verdict, "Machine "+m.Name+" stays")
		}
	}

	if len(members) == 0 {
		if verdict := p.etcd.HasQuorum(); !verdict.OK {
			return blockedByEtcd(verdict, "Machine "+m.Name+" stays")
		}
	}

	return nil
}

// well is true for a machine that has a Node and everything that is required.
func (m *Machine) well() bool {
	return m.NodeName != "" && !slices.ContainsFunc(required, func(name string) bool { return !m.says(name) })
}

// needs are the conditions that must be true of a machine while another is made or goes. TalosHealthy is not among them for one that goes, or
// that is not as the spec wants it: what ails its Talos is what those in its place may be without, and if they had to wait for that, a fault
// of a spec that is mended could never be mended on machines. A node on its way down is another matter: it takes its etcd member with it.
func (m *Machine) needs() []string {
	if m.Steady && (m.Deletion != nil || len(m.Differences) > 0) {
		return ofKubernetesAndEtcd
	}

	return required
}

// complaint says which of some conditions are not true of a machine; empty when all are, and it has a Node. Conditions of which the same is
// said, as of all when a node does not answer, are named together.
func (p *planner) complaint(m *Machine, needs []string) string {
	if m.NodeName == "" {
		return joined(fmt.Sprintf("Machine %s has no Node yet", m.Name), p.notJoined(m))
	}

	type saying struct {
		conditions []string
		what       string
	}

	var all []saying

	for _, name := range needs {
		what := ""

		switch c := meta.FindStatusCondition(m.Conditions, name); {
		case c == nil:
			what = "" // it says nothing
		case c.Status != metav1.ConditionTrue:
			what = joined(string(c.Status), c.Message)
		default:
			continue
		}

		at := slices.IndexFunc(all, func(s saying) bool { return s.what == what })
		if at < 0 {
			at = len(all)
			all = append(all, saying{what: what})
		}

		all[at].conditions = append(all[at].conditions, name)
	}

	if len(all) == 0 {
		return ""
	}

	out := make([]string, 0, len(all))
	for _, each := range all {
		verb := "says "
		if each.what == "" {
			verb = "does not say "
		}

		out = append(out, strings.TrimSpace(verb+strings.Join(each.conditions, ", ")+" "+each.what))
	}

	return fmt.Sprintf("Machine %s %s", m.Name, strings.Join(out, ", "))
}

// notJoined says what is known of why a machine has no Node: what its node says, or its etcd member.
func (p *planner) notJoined(m *Machine) string {
	for _, member := range p.etcd.MembersOf(m.Name) {
		switch {
		case member.Name == "":
			return fmt.Sprintf("its etcd member %s %s", member.ID, member.Problem)
		case member.Learner:
			return fmt.Sprintf("its etcd member %s is a learner, and has no vote before it has caught up", member.ID)
		}
	}

	if !m.Etcd.Answered && m.Etcd.Problem == "" && len(m.Addresses) > 0 {
		return "" // it was not asked
	}

	if !m.Etcd.Answered || m.Etcd.Problem != "" {
		return m.notUp()
	}

	return ""
}

func joined(what, why string) string {
	if why == "" {
		return what
	}

	return what + ": " + why
}

// says is the status of a condition of the machine.
func (m *Machine) says(condition string) bool {
	return meta.IsStatusConditionTrue(m.Conditions, condition)
}

// componentsWell is true when the machine has a whole Kubernetes control plane.
func (m *Machine) componentsWell() bool {
	return m.NodeName != "" && !slices.ContainsFunc(ofKubernetes, func(name string) bool { return !m.says(name) })
}
