// SPDX-License-Identifier: Apache-2.0

package secrets

import corev1 "k8s.io/api/core/v1"

// Rotation is the annotations of a Secret by which a user asks for what is in it to be made anew: the one that asks, with any value, and the
// one that notes which value was answered last. Each other value asks once.
type Rotation struct{ Ask, Answered string }

// Asked says whether there is a request that has not been answered.
func (r Rotation) Asked(object *corev1.Secret) bool {
	asked, found := object.Annotations[r.Ask]
	answered, done := object.Annotations[r.Answered]

	return found && (!done || asked != answered)
}

// Reason says that it was asked for.
func (r Rotation) Reason() string { return "the annotation " + r.Ask + " asks for it" }

// Settle notes a request as answered, and forgets one that was taken back, so that it may be asked again with the same value. It reports
// whether something changed.
func (r Rotation) Settle(object *corev1.Secret) bool {
	_, found := object.Annotations[r.Ask]
	_, done := object.Annotations[r.Answered]

	switch {
	case r.Asked(object):
		object.Annotations[r.Answered] = object.Annotations[r.Ask]
	case !found && done:
		delete(object.Annotations, r.Answered)
	default:
		return false
	}

	return true
}
