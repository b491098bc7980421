// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/reporting"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// A render that fails by turns for want of a right and of an answer is not written of with each try.
func TestExplainedFaultStays(t *testing.T) {
	down := apierrors.NewInternalError(errors.New("hunter2"))
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "registry", errors.New("hunter2"))
	clock := clocktesting.NewFakePassiveClock(time.Now())
	r := &Reconciler{failing: reporting.NewFailing(clock)}
	seen := observation{config: &bootstrapv1.TalosConfig{ObjectMeta: metav1.ObjectMeta{Name: "w-1", UID: "uid"}}}

	for i, try := range []struct {
		after time.Duration
		fault error
		want  string
	}{
		{0, down, "the last try failed"},
		{time.Second, denied, "does not let the manager"},
		{time.Second, down, "does not let the manager"},
		{time.Second, denied, "does not let the manager"},
		{reporting.Patience, down, "the last try failed"},
		{time.Second, denied, "the last try failed"},
		{reporting.Patience, denied, "does not let the manager"},
	} {
		clock.SetTime(clock.Now().Add(try.after))

		// As when the Secret could not be created: of the rest is known that it is well.
		done := outcome{bundle: good(bootstrapv1.SecretsBundleAvailableReason, "")}

		got := r.explain(seen, render{}, done, try.fault)
		if !strings.Contains(got.dataSecret.message, try.want) || got.bundle != done.bundle {
			t.Errorf("try %d: got %+v, want %q", i, got, try.want)
		}
	}
}

// A cache that is behind is waited for, and said to be when that lasts.
func TestMomentaryFault(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	r := &Reconciler{failing: reporting.NewFailing(clock)}
	config := &bootstrapv1.TalosConfig{ObjectMeta: metav1.ObjectMeta{Name: "w-1", UID: "uid"}}
	behind := fmt.Errorf("render: %w", &behindError{"TalosConfigPatch gpu"})

	for i, want := range []bool{true, true, false} {
		if got := r.isMomentary(config, behind); got != want {
			t.Errorf("try %d: got %t", i, got)
		}

		clock.SetTime(clock.Now().Add(reporting.Patience/2 + 1))
	}

	if r.isMomentary(&bootstrapv1.TalosConfig{}, errors.New("another")) || r.isMomentary(&bootstrapv1.TalosConfig{}, nil) {
		t.Error("only a cache is waited for")
	}

	got := r.explain(observation{config: config}, render{}, outcome{}, behind).dataSecret
	if got.status != metav1.ConditionFalse || !strings.Contains(got.message, "the last try failed") {
		t.Errorf("got %+v", got)
	}
}

// What is said of a bundle's time ends by no event.
func TestNoticeIsLookedAtAgain(t *testing.T) {
	for message, want := range map[string]time.Duration{"": 0, "not valid before then": noticePause} {
		if got := noticed(outcome{bundle: good(bootstrapv1.SecretsBundleAvailableReason, message)}); got.RequeueAfter != want {
			t.Errorf("%q: got %s", message, got.RequeueAfter)
		}
	}

	if got := noticed(outcome{bundle: bad(bootstrapv1.SecretsBundleInvalidReason, "it is no bundle")}); !got.IsZero() {
		t.Errorf("a fault is watched, got %s", got.RequeueAfter)
	}
}

// Whatever step fails for nothing that a user has written, what waits for it says so, with what is to be done, and in words of its own; what
// waits for nothing says nothing.
func TestExplain(t *testing.T) {
	down := apierrors.NewInternalError(errors.New("hunter2"))
	denied := fmt.Errorf("resolve: %w", &secrets.ReadError{
		Object: "Secret registry", Err: apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "registry", errors.New("hunter2")),
	})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "w-1"}, Data: map[string][]byte{dataKey: []byte("x")}}

	const right = "does not let the manager read Secret registry (Forbidden): give its ServiceAccount the rights back"

	tests := map[string]struct {
		next  step
		fault error

		// has says that the TalosConfig has its Secret.
		has bool

		// at once and after a while: the condition, and what its message has. Empty: nothing is said.
		atOnce, later, condition string
	}{
		"a render without a right":                {render{}, denied, false, right, right, bootstrapv1.TalosConfigDataSecretAvailableCondition},
		"a render without an answer":              {render{}, down, false, "the last try failed", "the last try failed", bootstrapv1.TalosConfigDataSecretAvailableCondition},
		"a pool without a right":                  {refresh{secret}, denied, true, right, right, bootstrapv1.TalosConfigConfigRenderedCondition},
		"a pool without an answer":                {refresh{secret}, down, true, "", reporting.Unanswered, bootstrapv1.TalosConfigConfigRenderedCondition},
		"nothing is known, without a right":       {nil, denied, false, right, right, bootstrapv1.TalosConfigDataSecretAvailableCondition},
		"nothing is known, without an answer":     {nil, down, false, "", reporting.Unanswered, bootstrapv1.TalosConfigDataSecretAvailableCondition},
		"a restored machine, without an answer":   {claim{secret}, down, false, "", reporting.Unanswered, bootstrapv1.TalosConfigDataSecretAvailableCondition},
		"a machine that has its Secret":           {keep{secret}, down, true, "", "", ""},
		"a machine that has its Secret, no right": {keep{secret}, denied, true, "", "", ""},
		"a render that somebody has been before":  {render{}, apierrors.NewConflict(schema.GroupResource{}, "w-1", nil), false, "", "", ""},
		"nothing has failed":                      {render{}, nil, false, "", "", ""},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Now())
			r := &Reconciler{failing: reporting.NewFailing(clock)}

			config := &bootstrapv1.TalosConfig{ObjectMeta: metav1.ObjectMeta{Name: "w-1", UID: "uid"}}
			if test.has {
				conditions.Set(config, metav1.Condition{Type: bootstrapv1.TalosConfigDataSecretAvailableCondition, Status: metav1.ConditionTrue, Reason: "Available"})
			}

			for _, want := range []string{test.atOnce, test.later} {
				said := r.explain(observation{config: config}, test.next, outcome{}, test.fault)

				if want == "" {
					if said != (outcome{}) {
						t.Errorf("got %+v, want nothing", said)
					}
				} else {
					got := map[string]verdict{
						bootstrapv1.TalosConfigDataSecretAvailableCondition: said.dataSecret, bootstrapv1.TalosConfigConfigRenderedCondition: said.rendered,
					}[test.condition]
					if diff := cmp.Diff(metav1.ConditionFalse, got.status); diff != "" || !strings.Contains(got.message, want) || strings.Contains(got.message, "hunter2") {
						t.Errorf("got %+v, want %q; %s", said, want, diff)
					}
				}

				clock.SetTime(clock.Now().Add(reporting.Patience))
			}
		})
	}
}
