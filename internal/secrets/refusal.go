// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsRefusal says whether the API server has refused a write for good, by a quota, an admission policy, a webhook or a rule: the same again is
// refused again until somebody changes something. A webhook that denies something need not say why in any word of Kubernetes: without one its
// denial has code 400 and no reason, and it may choose any other. So whatever is said to be the asker's fault is a refusal, but for what ends
// by itself or with another version of the object.
func IsRefusal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}

	code := status.Status().Code

	switch {
	case passing[code]:
		return false
	case code/100 == 4:
		return true
	}

	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// passing are the codes of the asker's faults that are none of the object: the token is renewed, what is missing or in the way is looked at
// again, and there is less to do a moment later.
var passing = map[int32]bool{
	401: true, // Unauthorized
	404: true, // Not Found
	408: true, // Request Timeout
	409: true, // Conflict
	410: true, // Gone
	429: true, // Too Many Requests
}

// AnswerOf names the kind of answer that an error is: a word of Kubernetes' or a code. It has nothing of a Secret, and stays the same for as
// long as the answers do, so that a condition may hold it.
func AnswerOf(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "nothing that can be used"
	}

	if reason := status.Status().Reason; knownReasons[reason] {
		return string(reason)
	}

	return fmt.Sprintf("code %d", status.Status().Code)
}

// withheld stands for what must not be handed on.
const withheld = "the words of the answer are left out, since they may quote the Secret"

// WithoutWords is the error of a request with a Secret in it without anything that the other side may have taken from the Secret. Admission
// policies and webhooks answer with texts of their own, which may have any part of it in any form, so that no search for values would do.
// What an answer means is kept, for Kubernetes' functions to tell; so are errors of the connection, which is never told a Secret.
func WithoutWords(err error) error {
	if err == nil {
		return nil
	}

	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return &apierrors.StatusError{ErrStatus: withoutWords(status.Status())}
	}

	// Those of a connection that fails or is too slow can tell whether it was that.
	var connection interface{ Timeout() bool }
	if errors.As(err, &connection) {
		return err
	}

	return errors.New("the answer cannot be used; " + withheld)
}

func withoutWords(status metav1.Status) metav1.Status {
	said := metav1.Status{Status: status.Status, Reason: status.Reason, Code: status.Code}

	if details := status.Details; details != nil && details.RetryAfterSeconds > 0 {
		said.Details = &metav1.StatusDetails{RetryAfterSeconds: details.RetryAfterSeconds}
	}

	// A reason is a word of a fixed list, unless a webhook makes one up.
	if !knownReasons[said.Reason] {
		said.Reason = metav1.StatusReasonUnknown
	}

	switch said.Reason {
	case metav1.StatusReasonConflict:
		said.Message = "Conflict: it has been changed in the meantime"
	case metav1.StatusReasonNotFound:
		said.Message = "NotFound: it does not exist"
	case metav1.StatusReasonForbidden:
		said.Message = "Forbidden, by a quota or a policy or for want of a right of the manager; " + withheld
	case metav1.StatusReasonUnknown:
		said.Message = fmt.Sprintf("code %d; %s", said.Code, withheld)
	default:
		said.Message = fmt.Sprintf("%s; %s", said.Reason, withheld)
	}

	return said
}

// knownReasons are those that Kubernetes defines.
var knownReasons = map[metav1.StatusReason]bool{
	metav1.StatusReasonUnauthorized: true, metav1.StatusReasonForbidden: true, metav1.StatusReasonNotFound: true,
	metav1.StatusReasonAlreadyExists: true, metav1.StatusReasonConflict: true, metav1.StatusReasonGone: true,
	metav1.StatusReasonInvalid: true, metav1.StatusReasonServerTimeout: true, metav1.StatusReasonStoreReadError: true,
	metav1.StatusReasonTimeout: true, metav1.StatusReasonTooManyRequests: true, metav1.StatusReasonBadRequest: true,
	metav1.StatusReasonMethodNotAllowed: true, metav1.StatusReasonNotAcceptable: true, metav1.StatusReasonRequestEntityTooLarge: true,
	metav1.StatusReasonUnsupportedMediaType: true, metav1.StatusReasonInternalError: true, metav1.StatusReasonExpired: true,
	metav1.StatusReasonServiceUnavailable: true,
}
