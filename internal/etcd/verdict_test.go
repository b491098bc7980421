// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/maesh-dev/ichor/internal/etcd"
)

func learner(i int) etcd.Member {
	m := member(i)
	m.Learner = true

	return m
}

func unstarted(i int) etcd.Member {
	m := member(i)
	m.Name = ""

	return m
}

// repeated is an alarm as etcd shows it: in the list of alarms, and in the status of each member, whosoever it is.
func repeated(hosts []etcd.Host, alarm etcd.Alarm) []etcd.Host {
	for i := range hosts {
		hosts[i].View.Alarms = []etcd.Alarm{alarm}
		hosts[i].View.Errors = []string{fmt.Sprintf("memberID:%d alarm:%s ", alarm.Member, alarm.Type)}
	}

	return hosts
}

// want is what a verdict says.
type want struct {
	reason  etcd.Reason
	message string
}

func got(v etcd.Verdict) want {
	if v.OK != (v.Reason == etcd.OK) {
		return want{"CONTRADICTION", v.Message}
	}

	if v.OK {
		return want{reason: v.Reason}
	}

	return want{v.Reason, v.Message}
}

func TestMayRemove(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		hosts []etcd.Host
		id    etcd.MemberID
		want  want
	}{
		"one of three": {world(3), 2, want{reason: etcd.OK}},
		"one of two":   {world(2), 2, want{reason: etcd.OK}},
		"the last":     {world(1), 1, want{etcd.LastMember, "1 (Machine cp1) is the last etcd member"}},
		"the leader":   {world(3), 1, want{reason: etcd.OK}},
		"nobody":       {world(3), 9, want{etcd.NotMember, "9 is no etcd member"}},
		"the dead one of three": {
			silent(world(3), "cp3"), 3, want{reason: etcd.OK},
		},
		"a live one of three with another dead": {
			silent(world(3), "cp3"), 2,
			want{etcd.QuorumAtRisk, "without etcd member 2 (Machine cp2), 1 of 2 voting members would be healthy and 2 are needed: 3 (Machine cp3) is on a node that tells nothing: connection refused"},
		},
		"a live one of five with another dead": {silent(world(5), "cp5"), 2, want{reason: etcd.OK}},
		"a live one of five with two dead": {
			silent(world(5), "cp4", "cp5"), 2,
			want{etcd.QuorumAtRisk, "without etcd member 2 (Machine cp2), 2 of 4 voting members would be healthy and 3 are needed: 4 (Machine cp4) is on a node that tells nothing: connection refused, 5 (Machine cp5) is on a node that tells nothing: connection refused"},
		},
		"one of two with the other dead": {
			silent(world(2), "cp1"), 2,
			want{etcd.MembersUnknown, "1 of 2 voting etcd members report the member list and follow one leader, 2 are needed"},
		},
		"two of three dead": {
			silent(world(3), "cp2", "cp3"), 2,
			want{etcd.MembersUnknown, "1 of 3 voting etcd members report the member list and follow one leader, 2 are needed"},
		},
		"nobody answers": {silent(world(3), "cp1", "cp2", "cp3"), 1, want{etcd.MembersUnknown, "no node reports etcd members"}},
		"no machines":    {nil, 1, want{etcd.MembersUnknown, "no node reports etcd members"}},
		"while another learns": {
			with(world(3), learner(4)), 2, want{etcd.MembersChanging, `etcd member 4 ("cp4") is still joining`},
		},
		"the one that learns": {with(world(3), learner(4)), 4, want{reason: etcd.OK}},
		"while another has not started": {
			with(world(3), unstarted(4)), 2, want{etcd.MembersChanging, "etcd member 4 (never started) is still joining"},
		},
		"the one that has not started": {with(world(3), unstarted(4)), 4, want{reason: etcd.OK}},
		"one voter has the old list": {
			edited(with(world(3), learner(4)), "cp3", func(h *etcd.Host) { h.View.Members = h.View.Members[:3] }), 4,
			want{etcd.MembersChanging, "the etcd members of cp3 have another member list than the quorum has"},
		},
		"two clusters": {
			append(world(1), led([]etcd.Host{host(7, []etcd.Member{member(7)})}, 7)...), 1,
			want{etcd.MembersUnknown, "two member lists have a quorum each, so there are two etcd clusters: that of cp1 and that of cp7"},
		},
		"no leader": {led(world(3), 0), 2, want{etcd.MembersUnknown, "0 of 3 voting etcd members report the member list and follow one leader, 2 are needed"}},
		"a leader that is no member": {
			led(world(3), 9), 2, want{etcd.MembersUnknown, "0 of 3 voting etcd members report the member list and follow one leader, 2 are needed"},
		},
		"another is corrupt": {
			edited(world(3), "cp1", func(h *etcd.Host) { h.View.Alarms = []etcd.Alarm{{Member: 3, Type: "CORRUPT"}} }), 2,
			want{etcd.QuorumAtRisk, "without etcd member 2 (Machine cp2), 1 of 2 voting members would be healthy and 2 are needed: 3 (Machine cp3) has the alarm " + etcd.Alarm{Member: 3, Type: "CORRUPT"}.String()},
		},
		"the corrupt one": {
			edited(world(3), "cp1", func(h *etcd.Host) { h.View.Alarms = []etcd.Alarm{{Member: 3, Type: "CORRUPT"}} }), 3, want{reason: etcd.OK},
		},
		"another is far behind": {
			edited(world(3), "cp3", func(h *etcd.Host) { h.View.Applied = 0; h.View.Leader = 1 }), 2, want{reason: etcd.OK},
		},
		"another is too far behind": {
			edited(world(3), "cp1", func(h *etcd.Host) { h.View.Applied = 20_000 }), 1,
			want{etcd.QuorumAtRisk, "without etcd member 1 (Machine cp1), 0 of 2 voting members would be healthy and 2 are needed: 2 (Machine cp2) is more than 10000 entries behind, 3 (Machine cp3) is more than 10000 entries behind"},
		},
		"an alarm that every member's status repeats": {
			repeated(world(3), etcd.Alarm{Member: 3, Type: "NOSPACE"}), 3, want{reason: etcd.OK},
		},
		"a well one while another has that alarm": {
			repeated(world(3), etcd.Alarm{Member: 3, Type: "NOSPACE"}), 2,
			want{etcd.QuorumAtRisk, "without etcd member 2 (Machine cp2), 1 of 2 voting members would be healthy and 2 are needed: 3 (Machine cp3) has the alarm " + etcd.Alarm{Type: "NOSPACE"}.String()},
		},
		"another has errors": {
			edited(world(3), "cp3", func(h *etcd.Host) { h.View.Errors = []string{"etcdserver: no leader"} }), 2,
			want{etcd.QuorumAtRisk, "without etcd member 2 (Machine cp2), 1 of 2 voting members would be healthy and 2 are needed: 3 (Machine cp3) reports: etcdserver: no leader"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			verdict := etcd.Assess(tc.hosts).MayRemove(tc.id)
			if diff := cmp.Diff(tc.want, got(verdict), cmp.AllowUnexported(want{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMayAdd(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		hosts []etcd.Host
		want  want
	}{
		"to one":   {world(1), want{reason: etcd.OK}},
		"to two":   {world(2), want{reason: etcd.OK}},
		"to three": {world(3), want{reason: etcd.OK}},
		"to four of five": {
			silent(world(5), "cp5"),
			want{etcd.QuorumAtRisk, "etcd takes no member in before every voting one is healthy, and 4 of 5 are: 5 (Machine cp5) is on a node that tells nothing: connection refused"},
		},
		"to three of five": {silent(world(5), "cp4", "cp5"), want{etcd.QuorumAtRisk, "etcd takes no member in before every voting one is healthy, and 3 of 5 are: 4 (Machine cp4) is on a node that tells nothing: connection refused, 5 (Machine cp5) is on a node that tells nothing: connection refused"}},
		"to two of three": {
			silent(world(3), "cp3"),
			want{etcd.QuorumAtRisk, "etcd takes no member in before every voting one is healthy, and 2 of 3 are: 3 (Machine cp3) is on a node that tells nothing: connection refused"},
		},
		"while one learns": {with(world(3), learner(4)), want{etcd.MembersChanging, `etcd member 4 ("cp4") is still joining`}},
		"no space": {
			edited(world(3), "cp2", func(h *etcd.Host) { h.View.Alarms = []etcd.Alarm{{Member: 2, Type: "NOSPACE"}} }),
			want{etcd.AlarmRaised, "etcd member 2 has the alarm " + etcd.Alarm{Type: "NOSPACE"}.String()},
		},
		"an alarm that is no member's": {
			edited(world(3), "cp2", func(h *etcd.Host) { h.View.Alarms = []etcd.Alarm{{Type: "CORRUPT"}} }),
			want{etcd.AlarmRaised, "etcd has the alarm CORRUPT (its members' data differ, and etcd cannot tell whose is wrong: compare a snapshot of each member (talosctl etcd snapshot) " +
				"and delete the Machine of the one that is wrong; when its member has left, run talosctl etcd alarm disarm)"},
		},
		"several alarms": {
			edited(edited(world(3), "cp1", func(h *etcd.Host) {
				h.View.Alarms = []etcd.Alarm{{Member: 3, Type: "NOSPACE"}, {Member: 2, Type: "NOSPACE"}}
			}),
				"cp2", func(h *etcd.Host) { h.View.Alarms = []etcd.Alarm{{Member: 3, Type: "CORRUPT"}} }),
			want{etcd.AlarmRaised, "etcd member 2 has the alarm " + etcd.Alarm{Member: 2, Type: "NOSPACE"}.String() + "; etcd member 3 has the alarm " +
				etcd.Alarm{Member: 3, Type: "CORRUPT"}.String() + "; etcd member 3 has the alarm " + etcd.Alarm{Member: 3, Type: "NOSPACE"}.String()},
		},
		"more alarms than anybody reads": {
			edited(world(3), "cp1", func(h *etcd.Host) {
				for i := range 9 {
					h.View.Alarms = append(h.View.Alarms, etcd.Alarm{Member: etcd.MemberID(i + 1), Type: "X"})
				}
			}),
			want{etcd.AlarmRaised, "etcd member 1 has the alarm X; etcd member 2 has the alarm X; etcd member 3 has the alarm X; etcd member 4 has the alarm X; " +
				"etcd member 5 has the alarm X; and 4 more"},
		},
		"the alarm of a member that has left": {
			edited(world(3), "cp2", func(h *etcd.Host) { h.View.Alarms = []etcd.Alarm{{Member: 9, Type: "CORRUPT"}} }),
			want{etcd.AlarmRaised, "etcd member 9 has the alarm CORRUPT (its data differs from the other members': delete its Machine; when its member has left, run talosctl etcd alarm disarm)"},
		},
		"an alarm that only a stranger reports": {
			append(world(3), etcd.Host{Name: "x", View: etcd.View{Answered: true, Self: 99, Alarms: []etcd.Alarm{{Member: 1, Type: "NOSPACE"}}}}),
			want{reason: etcd.OK},
		},
		"to nothing": {nil, want{etcd.MembersUnknown, "no node reports etcd members"}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if diff := cmp.Diff(tc.want, got(etcd.Assess(tc.hosts).MayAdd()), cmp.AllowUnexported(want{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMaySpare(t *testing.T) {
	t.Parallel()

	// Member 4 runs, and no machine has it.
	orphaned := func(n int) []etcd.Host { return with(world(n), member(9)) }

	cases := map[string]struct {
		hosts []etcd.Host
		want  want
	}{
		"a fourth beside three":          {orphaned(3), want{reason: etcd.OK}},
		"a third beside two":             {orphaned(2), want{reason: etcd.OK}},
		"a second beside one":            {orphaned(1), want{etcd.MembersUnknown, "1 of 2 voting etcd members report the member list and follow one leader, 2 are needed"}},
		"a fourth beside two and a half": {silent(orphaned(3), "cp3"), want{etcd.MembersUnknown, "2 of 4 voting etcd members report the member list and follow one leader, 3 are needed"}},
		"a sixth beside four of five":    {silent(orphaned(5), "cp5"), want{reason: etcd.OK}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if diff := cmp.Diff(tc.want, got(etcd.Assess(tc.hosts).MaySpare(9)), cmp.AllowUnexported(want{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHeirs(t *testing.T) {
	t.Parallel()

	ahead := func(hosts []etcd.Host) []etcd.Host {
		return edited(hosts, "cp3", func(h *etcd.Host) { h.View.Applied = 1001 })
	}

	cases := map[string]struct {
		hosts     []etcd.Host
		preferred []string
		want      []string
	}{
		"the one that has applied most": {ahead(world(3)), nil, []string{"cp3", "cp2"}},
		"the preferred":                 {ahead(world(4)), []string{"cp4", "cp2"}, []string{"cp4", "cp2", "cp3"}},
		"none that is not healthy":      {silent(world(3), "cp2"), []string{"cp2"}, []string{"cp3"}},
		"none that learns":              {with(world(2), learner(3)), nil, []string{"cp2"}},
		"nobody":                        {world(1), nil, nil},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var heirs []string
			for _, m := range etcd.Assess(tc.hosts).Heirs(1, tc.preferred) {
				heirs = append(heirs, m.Host)
			}

			if diff := cmp.Diff(tc.want, heirs); diff != "" {
				t.Error(diff)
			}
		})
	}
}
