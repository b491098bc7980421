// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/prose"
	"github.com/maesh-dev/ichor/internal/rollout"
)

func rollingOutCondition(machines []*clusterv1.Machine) metav1.Condition {
	count := 0

	var lines []string

	for _, machine := range machines {
		c := conditions.Get(machine, controlplanev1.MachineUpToDateCondition)
		if c == nil || c.Status != metav1.ConditionFalse {
			continue
		}

		count++

		if c.Message != "" {
			lines = append(lines, strings.Split(c.Message, "\n")...)
		}
	}

	if count == 0 {
		return no(controlplanev1.RollingOutCondition, controlplanev1.NotRollingOutReason, "")
	}

	// Cluster API wants the version first.
	slices.SortFunc(lines, func(a, b string) int {
		if av, bv := strings.HasPrefix(a, "* Version"), strings.HasPrefix(b, "* Version"); av != bv {
			if av {
				return -1
			}

			return 1
		}

		return strings.Compare(a, b)
	})

	message := strings.Join(append([]string{fmt.Sprintf("Rolling out %d not up-to-date replicas", count)}, slices.Compact(lines)...), "\n")

	return yes(controlplanev1.RollingOutCondition, controlplanev1.RollingOutReason, message)
}

// wanted is how many machines there should be.
func (o *observation) wanted() int {
	if o.snapshot.ControlPlane.Deleting {
		return 0
	}

	if n := o.controlPlane.Spec.Replicas; n != nil {
		return int(*n)
	}

	return 1
}

func scalingUpCondition(seen *observation, decision rollout.Decision) metav1.Condition {
	have, want := len(seen.own()), seen.wanted()

	if have >= want {
		message := ""
		if seen.missing != "" {
			message = "Scaling up would be blocked: " + seen.missing
		}

		return no(controlplanev1.ScalingUpCondition, controlplanev1.NotScalingUpReason, message)
	}

	return yes(controlplanev1.ScalingUpCondition, controlplanev1.ScalingUpReason, scaling("up", have, want, decision, seen.missing))
}

func scalingDownCondition(seen *observation, decision rollout.Decision) metav1.Condition {
	have, want := len(seen.own()), seen.wanted()
	if have <= want {
		return no(controlplanev1.ScalingDownCondition, controlplanev1.NotScalingDownReason, "")
	}

	return yes(controlplanev1.ScalingDownCondition, controlplanev1.ScalingDownReason, scaling("down", have, want, decision, ""))
}

// scaling is the message of a condition: how far it is, and the plan's sentence when it waits.
func scaling(direction string, have, want int, decision rollout.Decision, missing string) string {
	message := fmt.Sprintf("Scaling %s from %d to %d replicas", direction, have, want)

	var blocks []string

	if missing != "" {
		blocks = append(blocks, "* "+missing)
	}

	if _, waits := decision.Action.(rollout.Wait); waits {
		blocks = append(blocks, "* "+decision.Message)
	}

	if len(blocks) == 0 {
		return message
	}

	return message + " is blocked because:\n" + strings.Join(blocks, "\n")
}

func remediatingCondition(machines []*clusterv1.Machine, decision rollout.Decision) metav1.Condition {
	var waiting, unhealthy []string

	for _, machine := range machines {
		if !conditions.IsFalse(machine, clusterv1.MachineHealthCheckSucceededCondition) {
			continue
		}

		if c := conditions.Get(machine, controlplanev1.MachineOwnerRemediatedCondition); c != nil && c.Status == metav1.ConditionFalse {
			message := c.Message
			if note := decision.Remediation; note != nil && note.Machine == machine.Name {
				message = note.Message
			}

			waiting = append(waiting, joined("Machine "+machine.Name, message))
		} else {
			unhealthy = append(unhealthy, "Machine "+machine.Name)
		}
	}

	switch {
	case len(waiting) > 0:
		return yes(controlplanev1.RemediatingCondition, controlplanev1.RemediatingReason, prose.Named(waiting))
	case len(unhealthy) > 0:
		return no(controlplanev1.RemediatingCondition, controlplanev1.NotRemediatingReason,
			prose.Names(unhealthy)+" not healthy, and not to be remediated by the control plane")
	default:
		return no(controlplanev1.RemediatingCondition, controlplanev1.NotRemediatingReason, "")
	}
}
