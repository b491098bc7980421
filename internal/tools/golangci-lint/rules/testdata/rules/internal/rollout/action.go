// SPDX-License-Identifier: Apache-2.0

package rollout

// Action is what the planner may do.
//
//sumtype:decl
type Action interface{ action() }

// Drain is an action.
type Drain struct{}

// Reboot is an action.
type Reboot struct{}

func (Drain) action()  {}
func (Reboot) action() {}

// Name forgets an action; its default clause does not excuse it.
func Name(a Action) string {
	switch a.(type) { // want "gochecksumtype: exhaustiveness check failed for sum type .*Action.*missing cases for Reboot"
	case Drain:
		return "drain"
	default:
		return ""
	}
}

// Phase is an enumeration.
type Phase string

// The phases.
const (
	PhaseWaiting Phase = "Waiting"
	PhaseRunning Phase = "Running"
	PhaseDone    Phase = "Done"
)

// Finished forgets a phase.
func Finished(p Phase) bool {
	switch p { // want "exhaustive: missing cases in expression switch: PhaseWaiting"
	case PhaseDone:
		return true
	case PhaseRunning:
		return false
	}
	return false
}
