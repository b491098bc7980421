// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
)

// PlanNoting is Orphans, for see to note in s.Orphans, and then Plan, for a test that has no time to judge etcd twice.
func PlanNoting(s Snapshot, see func([]etcd.MemberID)) Decision {
	p := newPlanner(&s)
	see(orphansOf(p.etcd))

	return p.plan()
}

// ConfigFields are the fields of a TalosConfigSpec that are compared.
func ConfigFields() []string {
	out := make([]string, 0, len(configFields))
	for _, field := range configFields {
		out = append(out, field.name)
	}

	return out
}

// GateOf asks one gate of a list in Gates about a machine, or about a creation when machine is empty: the reason of its no, or empty.
func GateOf(list string, i int, s Snapshot, machine string) string {
	p := newPlanner(&s)
	m := p.machine(machine)

	var d *Decision

	switch list {
	case "first machine":
		d = first[i].check(p, m)
	case "creation":
		d = creation[i].check(p, m)
	case "removal":
		d = removal[i].check(p, m)
	case "remediation":
		n := remediation[i].check(p, m)
		if n != nil && n.deferred {
			return controlplanev1.MachineRemediationDeferredReason
		}

		if n != nil {
			return controlplanev1.MachineCannotBeRemediatedReason
		}
	}

	if d == nil {
		return ""
	}

	return d.Reason
}
