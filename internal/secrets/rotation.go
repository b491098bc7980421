// SPDX-License-Identifier: Apache-2.0

package secrets

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Rotation is the annotations of a Secret by which a user asks for what is in it to be made anew: the one that asks, with any value, and the
// one that notes which value was answered last. Each other value asks once.
type Rotation struct{ Ask, Answered string }

// Asked says whether there is a request that has not been answered.
func (r Rotation) Asked(object metav1.Object) bool {
	asked, found := object.GetAnnotations()[r.Ask]
	answered, done := object.GetAnnotations()[r.Answered]

	return found && (!done || asked != answered)
}

// Reason says that it was asked for.
func (r Rotation) Reason() string { return "the annotation " + r.Ask + " asks for it" }

// Settle notes a request as answered, and forgets one that was taken back, so that it may be asked again with the same value. It reports
// whether something changed.
func (r Rotation) Settle(object metav1.Object) bool {
	annotations := object.GetAnnotations()
	asked, found := annotations[r.Ask]
	_, done := annotations[r.Answered]

	switch {
	case r.Asked(object):
		annotations[r.Answered] = asked
	case !found && done:
		delete(annotations, r.Answered)
	default:
		return false
	}

	object.SetAnnotations(annotations)

	return true
}
