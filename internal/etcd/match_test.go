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
