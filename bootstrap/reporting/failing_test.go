// SPDX-License-Identifier: Apache-2.0

package reporting

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"

	"github.com/maesh-dev/ichor/internal/secrets"
)

// A right that is lacking is told at once, with what mends it; what ends by itself when it has lasted. However often and in whatever way it
// fails, what is said changes twice a minute at most.
func TestFailing(t *testing.T) {
	resource := schema.GroupResource{Resource: "secrets"}
	denied := fmt.Errorf("registries: %w", &secrets.ReadError{Object: "Secret registry", Err: apierrors.NewForbidden(resource, "x", errors.New("hunter2"))})
	down := apierrors.NewInternalError(errors.New("hunter2"))
	slow := fmt.Errorf("read: %w", context.DeadlineExceeded)

	const right = "the API server does not let the manager read Secret registry (Forbidden): give its ServiceAccount the rights back that it was installed with"

	type try struct {
		after time.Duration
		err   error
		want  string
	}

	tests := map[string][]try{
		"a right":              {{0, denied, right}, {time.Second, denied, right}},
		"a moment":             {{0, down, ""}, {time.Second, slow, ""}, {Patience - 2*time.Second, down, ""}},
		"it lasts":             {{0, down, ""}, {Patience, slow, Unanswered}, {time.Second, down, Unanswered}},
		"it ends in between":   {{0, down, ""}, {time.Second, nil, ""}, {Patience, down, ""}},
		"one after the other":  {{0, denied, right}, {Patience, down, Unanswered}, {time.Second, denied, Unanswered}, {Patience, denied, right}},
		"by turns, soon":       {{0, down, ""}, {time.Second, denied, right}, {time.Second, down, right}, {time.Second, denied, right}},
		"changed by another":   {{0, apierrors.NewConflict(resource, "x", nil), ""}, {2 * Patience, apierrors.NewConflict(resource, "x", nil), ""}},
		"the manager ends":     {{0, down, ""}, {Patience, fmt.Errorf("read: %w", context.Canceled), ""}},
		"a request of no name": {{0, apierrors.NewForbidden(resource, "x", errors.New("hunter2")), strings.Replace(right, "read Secret registry", "make a request that this needs", 1)}},
	}

	for name, tries := range tests {
		t.Run(name, func(t *testing.T) {
			clock := testclock.NewFakePassiveClock(time.Now())
			failing := NewFailing(clock)

			for i, each := range tries {
				clock.SetTime(clock.Now().Add(each.after))

				if each.err == nil {
					failing.Passed("a")
				}

				if diff := cmp.Diff(each.want, failing.Say("a", each.err)); diff != "" {
					t.Errorf("try %d: %s", i, diff)
				}
			}

			if got := failing.Say("b", down); got != "" {
				t.Errorf("of another object: %s", got)
			}
		})
	}
}
