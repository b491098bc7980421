// SPDX-License-Identifier: Apache-2.0

package secrets_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/maesh-dev/ichor/internal/secrets"
)

// What an answer says may be from the Secret, in any form; what it means is kept.
func TestWithoutWords(t *testing.T) {
	const value = "hunter2-hunter2"

	resource := schema.GroupResource{Resource: "secrets"}
	of := func(status metav1.Status) error { return &apierrors.StatusError{ErrStatus: status} }
	detailed := apierrors.NewForbidden(resource, "w-1", errors.New("it ends in "+value[7:]))
	detailed.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: value}}

	tests := map[string]struct {
		err  error
		want string
		is   func(error) bool
	}{
		"a policy": {detailed, "Forbidden, by a quota or a policy or for want of a right of the manager; the words of the answer are left out, since they may quote the Secret", apierrors.IsForbidden},
		"wrapped":  {fmt.Errorf("%s: %w", value, detailed), "Forbidden, by a quota or a policy or for want of a right of the manager; the words of the answer are left out, since they may quote the Secret", apierrors.IsForbidden},
		"a webhook that makes up a reason": {
			of(metav1.Status{Status: metav1.StatusFailure, Code: 418, Reason: value, Message: value}),
			"code 418; the words of the answer are left out, since they may quote the Secret", func(error) bool { return true },
		},
		"a conflict": {apierrors.NewConflict(resource, value, errors.New(value)), "Conflict: it has been changed in the meantime", apierrors.IsConflict},
		"gone":       {apierrors.NewNotFound(resource, value), "NotFound: it does not exist", apierrors.IsNotFound},
		"when to come again": {
			apierrors.NewServerTimeout(resource, value, 7), "ServerTimeout; the words of the answer are left out, since they may quote the Secret",
			func(err error) bool { seconds, ok := apierrors.SuggestsClientDelay(err); return ok && seconds == 7 },
		},
		"the connection": {
			&url.Error{Op: "Post", URL: "https://127.0.0.1", Err: errors.New("connection refused")}, `Post "https://127.0.0.1": connection refused`,
			func(error) bool { return true },
		},
		"too late": {
			fmt.Errorf("wait: %w", context.DeadlineExceeded), "wait: context deadline exceeded",
			func(err error) bool { return errors.Is(err, context.DeadlineExceeded) },
		},
		"no answer of an API server": {
			errors.New("invalid character in " + value), "the answer cannot be used; the words of the answer are left out, since they may quote the Secret",
			func(error) bool { return true },
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := secrets.WithoutWords(test.err)
			if diff := cmp.Diff(test.want, got.Error()); diff != "" {
				t.Error(diff)
			}

			if !test.is(got) {
				t.Errorf("%v does not mean any more what %v does", got, test.err)
			}

			if all := fmt.Sprintf("%+v %#v", got, got); strings.Contains(all, value[7:]) {
				t.Errorf("%s quotes the value", all)
			}
		})
	}

	if err := secrets.WithoutWords(nil); err != nil {
		t.Errorf("got %v", err)
	}
}

// A denial is one whatever a webhook calls it; what ends by itself, or with another version, is none.
func TestIsRefusal(t *testing.T) {
	resource := schema.GroupResource{Resource: "secrets"}
	of := func(code int32, reason metav1.StatusReason) error {
		return fmt.Errorf("create: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: "hunter2"}})
	}

	tests := map[string]struct {
		err    error
		want   bool
		answer string
	}{
		"a quota":                                  {apierrors.NewForbidden(resource, "w-1", errors.New("hunter2")), true, "Forbidden"},
		"invalid":                                  {of(422, metav1.StatusReasonInvalid), true, "Invalid"},
		"too large":                                {of(413, metav1.StatusReasonRequestEntityTooLarge), true, "RequestEntityTooLarge"},
		"a reason alone":                           {of(0, metav1.StatusReasonForbidden), true, "Forbidden"},
		"a webhook that says no":                   {of(400, ""), true, "code 400"},
		"a webhook that says no, and why":          {of(400, metav1.StatusReasonBadRequest), true, "BadRequest"},
		"a webhook that makes up a reason":         {of(400, "hunter2"), true, "code 400"},
		"a webhook with a code of its own":         {of(418, ""), true, "code 418"},
		"a webhook that is asked for another form": {of(406, metav1.StatusReasonNotAcceptable), true, "NotAcceptable"},
		"a token that has run out":                 {of(401, metav1.StatusReasonUnauthorized), false, "Unauthorized"},
		"gone":                                     {of(404, metav1.StatusReasonNotFound), false, "NotFound"},
		"in the way":                               {of(409, metav1.StatusReasonAlreadyExists), false, "AlreadyExists"},
		"changed":                                  {of(409, metav1.StatusReasonConflict), false, "Conflict"},
		"too late":                                 {of(408, metav1.StatusReasonTimeout), false, "Timeout"},
		"too many":                                 {of(429, metav1.StatusReasonTooManyRequests), false, "TooManyRequests"},
		"a webhook that is down":                   {of(500, metav1.StatusReasonInternalError), false, "InternalError"},
		"an API server that is down":               {of(503, metav1.StatusReasonServiceUnavailable), false, "ServiceUnavailable"},
		"no answer":                                {errors.New("dial: hunter2"), false, "nothing that can be used"},
		"none of an API server's, with a status in it": {fmt.Errorf("hunter2: %w", of(400, "")), true, "code 400"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for what, err := range map[string]error{"whole": test.err, "without words": secrets.WithoutWords(test.err)} {
				if got := secrets.IsRefusal(err); got != test.want {
					t.Errorf("%s: a refusal: got %t, want %t", what, got, test.want)
				}

				if diff := cmp.Diff(test.answer, secrets.AnswerOf(err)); diff != "" {
					t.Errorf("%s: %s", what, diff)
				}
			}
		})
	}

	if secrets.IsRefusal(nil) {
		t.Error("nothing is no refusal")
	}
}
