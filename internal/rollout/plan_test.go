// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/rollout"
)

// TestRetryAfter has somebody look again whatever is decided.
func TestRetryAfter(t *testing.T) {
	t.Parallel()

	due := func(in time.Duration) func(*rollout.Snapshot) {
		return func(s *rollout.Snapshot) { s.ControlPlane.Spec.Rollout.After = metav1.NewTime(s.Now.Add(in)) }
	}

	cases := map[string]struct {
		change func(*rollout.Snapshot)
		want   time.Duration
	}{
		"at rest":                             {func(*rollout.Snapshot) {}, 5 * time.Minute},
		"at rest, and a rollout is due soon":  {due(time.Minute), time.Minute},
		"at rest, and a rollout is due later": {due(time.Hour), 5 * time.Minute},
		"after an action":                     {func(s *rollout.Snapshot) { leaving(s, 1, stages[3]) }, 2 * time.Second},
		"waiting":                             {func(s *rollout.Snapshot) { leaving(s, 1, stages[1]) }, 20 * time.Second},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := settled(3)
			tc.change(&s)

			if d := rollout.Plan(s); d.RetryAfter != tc.want {
				t.Errorf("%s: looks again after %s, want %s", d.Reason, d.RetryAfter, tc.want)
			}
		})
	}
}

// TestMessageFits holds messages to what status.plan.message has room for, however much others have to say.
func TestMessageFits(t *testing.T) {
	t.Parallel()

	s := settled(7)
	long := strings.Repeat("wörtlich ", 5_000)

	for i := range s.Machines {
		s.Machines[i].Conditions = conditionsOf(metav1.ConditionFalse, fmt.Sprint(i, long))
		s.Machines[i].Differences = []rollout.Difference{{Field: "version", Message: long, InPlace: true}}
	}

	s.Machines[6].Etcd = etcd.View{Problem: long}
	s.ControlPlane.Spec.Rollout.Strategy.Type = controlplanev1.InPlaceRollout
	ill(&s.Machines[5])

	d := rollout.Plan(s)
	if n := utf8.RuneCountInString(d.Message); n > 8192 || n < 1000 || !utf8.ValidString(d.Message) {
		t.Errorf("%d characters, valid: %t", n, utf8.ValidString(d.Message))
	}

	if d.Remediation == nil || len(d.Remediation.Message) > 32768 {
		t.Errorf("the note on the machine: %+v", d.Remediation)
	}
}

// TestDeletionWithoutCluster has somebody told what keeps Machines that nobody deletes: without a Cluster, Cluster API does not look at them.
func TestDeletionWithoutCluster(t *testing.T) {
	t.Parallel()

	const advice = "create the Cluster again"

	s := settled(3)
	s.ControlPlane.Deleting = true

	for i := range s.Machines {
		leaving(&s, i, stages[1])
		s.Machines[i].Hook = false
	}

	if d := rollout.Plan(s); d.Reason != controlplanev1.PlanMachineDeletingReason || strings.Contains(d.Message, advice) {
		t.Errorf("with a Cluster: %s: %s", d.Reason, d.Message)
	}

	s.Cluster = nil

	if d := rollout.Plan(s); d.Reason != controlplanev1.PlanMachineDeletingReason || !strings.Contains(d.Message, advice) {
		t.Errorf("without a Cluster: %s: %s", d.Reason, d.Message)
	}

	s.Machines = nil

	if d := rollout.Plan(s); d.Action != (rollout.ReleaseControlPlane{}) {
		t.Errorf("without Machines: %T %s", d.Action, d.Message)
	}
}
