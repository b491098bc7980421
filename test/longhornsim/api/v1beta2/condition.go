// SPDX-License-Identifier: Apache-2.0

package v1beta2

// Condition is Longhorn's own form of a condition: times are strings.
type Condition struct {
	// Type of the condition.
	Type string `json:"type"`
	// Status is True, False or Unknown.
	Status ConditionStatus `json:"status"`
	// LastProbeTime is empty, or a time as RFC 3339.
	LastProbeTime string `json:"lastProbeTime"`
	// LastTransitionTime is a time as RFC 3339.
	LastTransitionTime string `json:"lastTransitionTime"`
	// Reason in one word.
	Reason string `json:"reason"`
	// Message for people.
	Message string `json:"message"`
}

// ConditionStatus is the status of a condition.
type ConditionStatus string

// Statuses of conditions.
const (
	ConditionTrue    ConditionStatus = "True"
	ConditionFalse   ConditionStatus = "False"
	ConditionUnknown ConditionStatus = "Unknown"
)

// FindCondition returns the condition of a type, or one of status Unknown.
func FindCondition(conditions []Condition, conditionType string) Condition {
	for _, condition := range conditions {
		if condition.Type == conditionType {
			return condition
		}
	}

	return Condition{Type: conditionType, Status: ConditionUnknown}
}

// SetCondition sets a condition; the time of its transition changes with its status alone.
func SetCondition(conditions []Condition, condition Condition, now string) []Condition {
	condition.LastTransitionTime = now

	for i, old := range conditions {
		if old.Type != condition.Type {
			continue
		}

		if old.Status == condition.Status {
			condition.LastTransitionTime = old.LastTransitionTime
		}

		conditions[i] = condition

		return conditions
	}

	return append(conditions, condition)
}
