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
		"a policy": {detailed, "Forbidden; the words of the answer are left out, since they may quote the Secret", apierrors.IsForbidden},
		"wrapped":  {fmt.Errorf("%s: %w", value, detailed), "Forbidden; the words of the answer are left out, since they may quote the Secret", apierrors.IsForbidden},
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
