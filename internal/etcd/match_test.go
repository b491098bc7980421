// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/maesh-dev/ichor/internal/etcd"
)

func TestMatch(t *testing.T) {
	t.Parallel()

	type match struct {
		Host     string
		Evidence etcd.Evidence
	}

	// reused is a new machine with the address of cp3, which is gone.
	reused := func(hosts []etcd.Host, view etcd.View) []etcd.Host {
		return append(hosts[:2], etcd.Host{Name: "new", Addresses: []string{"10.0.0.3"}, View: view})
	}
	empty := etcd.View{Answered: true, Data: etcd.DataAbsent}

	forgotten := func(hosts []etcd.Host, name string) []etcd.Host {
		return edited(silent(hosts, name), name, func(h *etcd.Host) { h.Recorded = nil })
	}

	cases := map[string]struct {
		hosts []etcd.Host
		id    etcd.MemberID
		want  match
	}{
		"its own word":                        {world(3), 3, match{"cp3", etcd.BySelf}},
		"its earlier word":                    {silent(world(3), "cp3"), 3, match{"cp3", etcd.ByRecord}},
		"its name and address":                {forgotten(world(3), "cp3"), 3, match{"cp3", etcd.ByNameAndAddress}},
		"the address of one that has no name": {append(with(world(3), unstarted(4)), etcd.Host{Name: "cp4", Addresses: []string{"10.0.0.4"}}), 4, match{"cp4", etcd.ByNameAndAddress}},
		"its name only": {
			edited(forgotten(world(3), "cp3"), "cp3", func(h *etcd.Host) { h.Addresses = []string{"10.0.0.33"} }), 3, match{"cp3", etcd.ByNameOrAddress},
		},
		"its address only": {
			edited(forgotten(world(3), "cp3"), "cp3", func(h *etcd.Host) { h.NodeName = "other"; h.Name = "other" }), 3, match{"other", etcd.ByNameOrAddress},
		},
		"names that differ behind the first dot are two": {
			edited(forgotten(world(3), "cp3"), "cp3", func(h *etcd.Host) { h.Name, h.NodeName, h.Addresses = "m", "cp3.example.com", nil }), 3, match{"", etcd.NoEvidence},
		},
		"an address that two machines have": {
			append(forgotten(world(3), "cp3"), etcd.Host{Name: "twin", Addresses: []string{"10.0.0.3"}}), 3, match{"cp3", etcd.ByNameOrAddress},
		},
		"an ID that two machines recorded": {
			append(silent(world(3), "cp3"), etcd.Host{Name: "twin", Recorded: []etcd.MemberID{3}}), 3, match{"cp3", etcd.ByNameOrAddress},
		},
		"an address written in IPv6": {
			edited(forgotten(world(3), "cp3"), "cp3", func(h *etcd.Host) { h.Addresses = []string{"::ffff:10.0.0.3"} }), 3, match{"cp3", etcd.ByNameAndAddress},
		},
		"a new life of the node": {
			edited(with(world(3), member(4)), "cp3", func(h *etcd.Host) { h.View.Self = 4 }), 3, match{"cp3", etcd.ByRecord},
		},
		"the address of a new machine that does not answer": {reused(world(3), etcd.View{}), 3, match{"new", etcd.ByNameOrAddress}},
		"the address of a new machine without data":         {reused(world(3), empty), 3, match{"", etcd.NoEvidence}},
		"the address of a new machine that runs another": {
			reused(world(3), etcd.View{Answered: true, Data: etcd.DataPresent, Self: 9}), 3, match{"", etcd.NoEvidence},
		},
		"the address of a new machine without data, of one that has not started": {
			reused(with(world(2), unstarted(3)), empty), 3, match{"new", etcd.ByNameAndAddress},
		},
		"the name of a node that has started since": {
			edited(with(world(2), learner(3)), "cp2", func(h *etcd.Host) { h.Name, h.NodeName, h.Recorded, h.View = "cp3", "cp3", nil, empty }), 3,
			match{"cp3", etcd.ByNameOrAddress},
		},
		"its node has lost its data": {
			edited(world(3), "cp3", func(h *etcd.Host) { h.View = empty }), 3, match{"cp3", etcd.ByRecord},
		},
		"nobody's": {with(world(3), member(9)), 9, match{"", etcd.NoEvidence}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			m, ok := etcd.Assess(tc.hosts).Member(tc.id)
			if !ok {
				t.Fatal("no such member")
			}

			if diff := cmp.Diff(tc.want, match{m.Host, m.Evidence}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOrphans tells members that no machine has from those that one may have.
func TestOrphans(t *testing.T) {
	t.Parallel()

	empty := etcd.View{Answered: true, Data: etcd.DataAbsent}
	cases := map[string]struct {
		hosts           []etcd.Host
		orphan, pending bool
	}{
		"a machine's":                 {world(3), false, false},
		"nobody's":                    {world(3)[:2], true, false},
		"a silent machine's":          {silent(world(3), "cp3"), false, false},
		"one that its node has lost":  {edited(world(3), "cp3", func(h *etcd.Host) { h.View = empty }), true, false},
		"one that has just been made": {append(with(world(2), unstarted(3)), etcd.Host{Name: "cp3", Addresses: []string{"10.0.0.3"}, View: empty}), false, true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			m, ok := etcd.Assess(tc.hosts).Member(3)
			if !ok || m.Orphan() != tc.orphan || m.Pending != tc.pending {
				t.Errorf("orphan: %t, pending: %t, want %t, %t", m.Orphan(), m.Pending, tc.orphan, tc.pending)
			}
		})
	}

	// One that two machines may have is neither's: all of them are named, so that each protects it.
	m, _ := etcd.Assess(append(edited(silent(world(3), "cp3"), "cp3", func(h *etcd.Host) { h.Recorded = nil }), etcd.Host{Name: "twin", Addresses: []string{"10.0.0.3"}})).Member(3)
	if diff := cmp.Diff([]string{"cp3", "twin"}, m.Candidates); diff != "" {
		t.Error(diff)
	}
}

func TestAccounted(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		host etcd.Host
		want bool
	}{
		"a member":                             {host(1, nil), true},
		"no data":                              {etcd.Host{Name: "new", View: etcd.View{Answered: true, Data: etcd.DataAbsent}}, true},
		"data that it cannot tell of":          {etcd.Host{Name: "new", View: etcd.View{Answered: true}}, false},
		"no answer":                            {etcd.Host{Name: "new"}, false},
		"no answer, though it had no data":     {etcd.Host{Name: "new", View: etcd.View{Data: etcd.DataAbsent}}, false},
		"a member that it was, and is no more": {etcd.Host{Name: "old", Recorded: []etcd.MemberID{77}}, true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			hosts := world(3)
			if name == "a member" {
				hosts = hosts[1:]
				tc.host = world(3)[0]
			}

			if accounted := etcd.Assess(append(hosts, tc.host)).Accounted(tc.host.Name); accounted != tc.want {
				t.Errorf("accounted: %t, want %t", accounted, tc.want)
			}
		})
	}

	if etcd.Assess(world(3)).Accounted("nobody") {
		t.Error("a machine that is not there is accounted for")
	}
}

func TestParseMemberID(t *testing.T) {
	t.Parallel()

	if id, err := etcd.ParseMemberID("8e9e05c52164694d"); err != nil || id.String() != "8e9e05c52164694d" {
		t.Errorf("got %s, %v", id, err)
	}

	for _, bad := range []string{"", "0", "x", "-1", "18e9e05c52164694d"} {
		if id, err := etcd.ParseMemberID(bad); err == nil {
			t.Errorf("%q is taken for %s", bad, id)
		}
	}
}
