// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/rollout"
)

// left adds voting members to the list of every node that no Machine has, noted since so long.
func left(since time.Duration, members ...etcd.MemberID) func(*rollout.Snapshot) {
	return func(s *rollout.Snapshot) {
		s.Orphans = map[etcd.MemberID]time.Time{}

		for _, id := range members {
			s.Orphans[id] = s.Now.Add(-since)
			member := etcd.Member{ID: id, Name: "gone-" + id.String(), PeerURLs: []string{"https://10.9.9." + id.String() + ":2380"}}

			for i := range s.Machines {
				s.Machines[i].Etcd.Members = append(slices.Clone(s.Machines[i].Etcd.Members), member)
			}
		}
	}
}

// TestOrphan says when an etcd member is removed that no Machine has: when it has been so for long enough, when nothing may know better, and
// when the others are a quorum of all members of now, and not only of those that would be left.
func TestOrphan(t *testing.T) {
	t.Parallel()

	silent := func(i int) func(*rollout.Snapshot) {
		return func(s *rollout.Snapshot) { s.Machines[i].Etcd = etcd.View{Problem: "no answer"} }
	}
	behind := func(i int) func(*rollout.Snapshot) {
		return func(s *rollout.Snapshot) {
			for j := range s.Machines {
				s.Machines[j].Etcd.Applied = 250_000
			}

			s.Machines[i].Etcd.Applied = 1
		}
	}
	node := func(nodes rollout.Nodes) func(*rollout.Snapshot) {
		return func(s *rollout.Snapshot) { s.Nodes = nodes }
	}

	const long = rollout.OrphanGrace

	cases := map[string]struct {
		machines int32
		changes  []func(*rollout.Snapshot)
		removed  etcd.MemberID
		waits    string
	}{
		"long enough":                       {3, []func(*rollout.Snapshot){left(long, 9)}, 9, ""},
		"one after the other":               {3, []func(*rollout.Snapshot){left(long, 9, 8)}, 8, ""},
		"it has just been seen":             {3, []func(*rollout.Snapshot){left(0, 9)}, 0, controlplanev1.PlanRemovingOrphanReason},
		"not long enough":                   {3, []func(*rollout.Snapshot){left(long-time.Second, 9)}, 0, controlplanev1.PlanRemovingOrphanReason},
		"nobody noted since when":           {3, []func(*rollout.Snapshot){left(long, 9), func(s *rollout.Snapshot) { s.Orphans = nil }}, 0, controlplanev1.PlanRemovingOrphanReason},
		"two of four tell of it":            {3, []func(*rollout.Snapshot){left(long, 9), silent(2)}, 0, controlplanev1.PlanEtcdUnknownReason},
		"four of six are healthy":           {5, []func(*rollout.Snapshot){left(long, 9), silent(4)}, 9, ""},
		"three of six are healthy":          {5, []func(*rollout.Snapshot){left(long, 9), silent(4), behind(3)}, 0, controlplanev1.PlanEtcdQuorumAtRiskReason},
		"three of five, and two to be gone": {3, []func(*rollout.Snapshot){left(long, 9, 8), behind(2)}, 0, controlplanev1.PlanEtcdQuorumAtRiskReason},
		"the Nodes cannot be read":          {3, []func(*rollout.Snapshot){left(long, 9), node(rollout.Nodes{})}, 0, controlplanev1.PlanEtcdUnaccountedReason},
		"a Node without a Machine has its address": {3, []func(*rollout.Snapshot){left(long, 9), node(rollout.Nodes{Known: true, Items: []rollout.Node{
			{Name: "kube-9", Addresses: []string{"10.9.9.9"}, Ready: true},
		}})}, 0, controlplanev1.PlanEtcdUnaccountedReason},
		"a Node that is not ready has its address": {3, []func(*rollout.Snapshot){left(long, 9), node(rollout.Nodes{Known: true, Items: []rollout.Node{
			{Name: "kube-9", Addresses: []string{"10.9.9.9"}},
		}})}, 9, ""},
		"during an operation": {3, []func(*rollout.Snapshot){left(long, 9), func(s *rollout.Snapshot) { s.Machines[0].Operation = "Upgrade" }}, 0, controlplanev1.PlanOperationRunningReason},
		"a machine whose part in etcd is not known": {3, []func(*rollout.Snapshot){left(long, 9), silent(2), func(s *rollout.Snapshot) {
			s.Machines = append(s.Machines, s.Machines[2])
			s.Machines[3].Name, s.Machines[3].RecordedMembers, s.Machines[3].Addresses, s.Machines[3].AddressRecorded = "cp04", nil, []string{"10.0.0.44"}, true
			s.ControlPlane.Spec.Replicas = ptr.To[int32](4)
		}}, 0, controlplanev1.PlanEtcdUnaccountedReason},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := settled(tc.machines)
			for _, change := range tc.changes {
				change(&s)
			}

			got := rollout.Plan(s)

			removal, removes := got.Action.(rollout.RemoveEtcdMember)
			if removal.Member != tc.removed || removes != (tc.removed != 0) {
				t.Errorf("%s %s: %s, want member %s removed", rollout.Name(got.Action), got.Reason, got.Message, tc.removed)
			}

			if removes && (removal.Machine != "" || got.Reason != controlplanev1.PlanRemovingOrphanReason) {
				t.Errorf("%#v: %s", removal, got.Reason)
			}

			if diff := cmp.Diff(tc.waits, map[bool]string{false: got.Reason, true: ""}[removes]); diff != "" {
				t.Errorf("%s: %s", got.Message, diff)
			}
		})
	}
}
