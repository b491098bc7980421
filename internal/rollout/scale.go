// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"
	"strings"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/prose"
)

// roll replaces machines that are not as the spec wants them, as far as the strategy allows.
func (p *planner) roll() *Decision {
	if !p.initialized {
		return nil
	}

	outdated := p.outdated()
	if len(outdated) == 0 {
		return nil
	}

	m := p.goner(outdated)
	message := "Machine " + m.Name + " is replaced: " + m.differs()

	if len(p.live) >= p.replicas()+p.surge() {
		if d := p.pass(removal, m); d != nil {
			return d
		}

		return do(DeleteMachine{m.Name}, controlplanev1.PlanRollingOutReason, "%s", message)
	}

	d := p.pass(creation, nil)
	if d == nil {
		return do(p.create(), controlplanev1.PlanRollingOutReason, "%s", message+"; first a new one is made")
	}

	// A machine that is to be replaced and is not well must not keep its replacement from being made: it goes first then.
	if !m.well() && len(p.live) > 1 && p.pass(removal, m) == nil {
		return do(DeleteMachine{m.Name}, controlplanev1.PlanRollingOutReason, "%s", message+"; it is not well, so it goes before a new one is made")
	}

	return d
}

// outdated are the machines to replace. What others have to do about the rest is held.
func (p *planner) outdated() []*Machine {
	strategy := p.ControlPlane.Spec.Rollout.Strategy

	var replace, inPlace, stuck []*Machine

	for _, m := range p.live {
		if len(m.Differences) == 0 {
			continue
		}

		possible := !slices.ContainsFunc(m.Differences, func(d Difference) bool { return !d.InPlace })
		asked := slices.ContainsFunc(m.Differences, func(d Difference) bool { return d.Field == rolloutAfter })

		switch {
		case strategy.Type == controlplanev1.OnDeleteRollout:
			stuck = append(stuck, m)
		case strategy.Type == controlplanev1.RollingUpdateRollout, asked,
			!possible && strategy.InPlace.Fallback == controlplanev1.ReplaceFallback:
			replace = append(replace, m)
		case possible:
			inPlace = append(inPlace, m)
		default:
			stuck = append(stuck, m)
		}
	}

	switch {
	case len(stuck) > 0 && strategy.Type == controlplanev1.OnDeleteRollout:
		p.hold(wait(controlplanev1.PlanOnDeleteReason, "Machines are replaced when they are deleted (spec.rollout.strategy.type OnDelete): %s", described(stuck)))
	case len(stuck) > 0:
		p.hold(wait(controlplanev1.PlanInPlaceImpossibleReason,
			"What cannot be done in place waits for you: delete the Machines one by one, or set spec.rollout.strategy.inPlace.fallback to Replace: %s", described(stuck)))
	case len(inPlace) > 0:
		p.hold(wait(controlplanev1.PlanInPlaceReason,
			"Changes in place are not there yet. Set spec.rollout.strategy.type to RollingUpdate to have the Machines replaced, or to OnDelete to have each replaced when you delete it: %s",
			described(inPlace)))
	}

	return replace
}

// surge is how many machines there may be above replicas during a rollout.
func (p *planner) surge() int {
	strategy := p.ControlPlane.Spec.Rollout.Strategy
	if n := strategy.RollingUpdate.MaxSurge; strategy.Type == controlplanev1.RollingUpdateRollout && n != nil {
		return int(*n)
	}

	return 1
}

// scale makes or deletes a machine.
func (p *planner) scale() *Decision {
	have, want := len(p.live), p.replicas()

	switch {
	case have == 0 && !p.initialized && len(p.leaving) == 0:
		if d := cmp.Or(p.pass(first, nil), p.served()); d != nil {
			return d
		}

		return do(p.create(), controlplanev1.PlanInitializingReason, "The first machine is made")
	case !p.initialized:
		return nil
	case have < want:
		if d := p.pass(creation, nil); d != nil {
			return d
		}

		if record := p.replaces(); record != nil {
			return do(p.create(), controlplanev1.PlanRemediatingReason, "A machine is made in place of %s, which was unhealthy", record.Machine)
		}

		return do(p.create(), controlplanev1.PlanScalingUpReason, "%d of %d machines are there", have, want)
	case have > want:
		m := p.goner(p.live)
		if d := p.pass(removal, m); d != nil {
			return d
		}

		return do(DeleteMachine{m.Name}, controlplanev1.PlanScalingDownReason, "%d machines are there, and replicas is %d: %s goes", have, want, m.Name)
	default:
		return nil
	}
}

func (p *planner) create() CreateMachine {
	return CreateMachine{FailureDomain: p.emptiest(), Remediation: p.replaces()}
}

// goner is the machine of some that goes first: those that users ask for, those that are unhealthy, those that are not well, those that are
// outdated, those in the failure domain with most machines, and then the oldest. Whatever else goes waits for one that is not well.
func (p *planner) goner(among []*Machine) *Machine {
	outdated := func(m *Machine) bool { return len(m.Differences) > 0 }

	for _, class := range []func(*Machine) bool{
		func(m *Machine) bool { return m.DeleteRequested && outdated(m) },
		func(m *Machine) bool { return m.DeleteRequested },
		(*Machine).unhealthy,
		func(m *Machine) bool { return outdated(m) && !m.well() },
		func(m *Machine) bool { return !m.well() },
		outdated,
		func(*Machine) bool { return true },
	} {
		if some := filter(among, class); len(some) > 0 {
			return p.fullest(some)
		}
	}

	return nil // among is never empty
}

func filter(machines []*Machine, keep func(*Machine) bool) []*Machine {
	var out []*Machine

	for _, m := range machines {
		if keep(m) {
			out = append(out, m)
		}
	}

	return out
}

// differs says what is not as the spec wants it.
func (m *Machine) differs() string {
	out := make([]string, 0, len(m.Differences))
	for _, d := range m.Differences {
		out = append(out, d.Message)
	}

	return strings.Join(out, ", ")
}

// described names machines and what is different.
func described(machines []*Machine) string {
	out := make([]string, 0, len(machines))
	for _, m := range machines {
		out = append(out, "Machine "+m.Name+" ("+m.differs()+")")
	}

	return prose.InOrder(out)
}
