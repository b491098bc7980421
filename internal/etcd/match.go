// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// match finds each member's machine. The stronger evidence wins; of two machines with the same strong evidence neither does.
func (c *Cluster) match(hosts []Host) {
	for i := range c.Members {
		m := &c.Members[i]
		e := gather(m.Member, hosts)

		m.Host, m.Evidence, m.Candidates = e.strongest(m.Name == "")
		m.Left = m.Evidence == ByRecord && c.hosts[m.Host].denies(m.Member)
		m.Pending = m.Evidence == ByNameAndAddress && m.Name == "" && c.hosts[m.Host].empty()
	}
}

// evidence is what speaks for machines to have a member.
type evidence struct{ self, record, address, name []string }

func gather(m Member, hosts []Host) evidence {
	var (
		e         evidence
		denied    []string
		addresses = PeerAddresses(m.PeerURLs)
	)

	for i := range hosts {
		h := &hosts[i]
		denies := h.denies(m)

		if h.View.Answered && h.View.Self == m.ID {
			e.self = append(e.self, h.Name)
		}

		switch recorded := slices.Contains(h.Recorded, m.ID); {
		case recorded && denies:
			denied = append(denied, h.Name)
		case recorded:
			e.record = append(e.record, h.Name)
		}

		if denies {
			continue // its own word is stronger than a name, or an address that it may have from a machine of before
		}

		if slices.ContainsFunc(h.Addresses, func(address string) bool { return slices.Contains(addresses, plain(address)) }) {
			e.address = append(e.address, h.Name)
		}

		if h.named(m) {
			e.name = append(e.name, h.Name)
		}
	}

	if len(e.record) == 0 {
		e.record = denied
	}

	return e
}

// empty is the node's own word that it has no etcd data.
func (h *Host) empty() bool { return h.View.Answered && h.View.Self == 0 && h.View.Data == DataAbsent }

func (h *Host) named(m Member) bool {
	return m.Name != "" && (strings.EqualFold(h.Name, m.Name) || strings.EqualFold(h.NodeName, m.Name))
}

// denies is a node's own word that a member is not its own, whatever name and address say: it runs another one, or it has no data of one that
// has started. One that has not may be about to, since etcd adds a member before it has data; and one of the node's name that only learns may
// have started since the node was asked.
func (h *Host) denies(m Member) bool {
	switch {
	case !h.View.Answered:
		return false
	case h.View.Self != 0:
		return h.View.Self != m.ID
	default:
		return h.empty() && m.Name != "" && !(m.Learner && h.named(m))
	}
}

// strongest chooses among what speaks for machines. Ambiguous strong evidence counts as weak: it protects and decides nothing.
func (e evidence) strongest(unstarted bool) (string, Evidence, []string) {
	switch {
	case len(e.self) == 1:
		return e.self[0], BySelf, nil
	case len(e.self) > 1:
		return weak(e.self)
	case len(e.record) == 1:
		return e.record[0], ByRecord, nil
	case len(e.record) > 1:
		return weak(e.record)
	case len(e.address) == 1 && (unstarted || slices.Equal(e.name, e.address)):
		return e.address[0], ByNameAndAddress, nil
	default:
		return weak(append(e.address, e.name...))
	}
}

func weak(candidates []string) (string, Evidence, []string) {
	if len(candidates) == 0 {
		return "", NoEvidence, nil
	}

	first := candidates[0]
	slices.Sort(candidates)

	return first, ByNameOrAddress, slices.Compact(candidates)
}

// PeerAddresses are the IP addresses of peer URLs, in one form each; what is no IP address is left out.
func PeerAddresses(peerURLs []string) []string {
	var out []string

	for _, peer := range peerURLs {
		parsed, err := url.Parse(peer)
		if err != nil {
			continue
		}

		if address, err := netip.ParseAddr(parsed.Hostname()); err == nil {
			out = append(out, address.Unmap().String())
		}
	}

	return out
}

// plain is an IP address in the form of PeerAddresses.
func plain(address string) string {
	if strings.IndexByte(address, ':') < 0 {
		return address // IPv4 has one form only
	}

	if parsed, err := netip.ParseAddr(address); err == nil {
		return parsed.Unmap().String()
	}

	return address
}

// collectAlarms takes together what members of the list report, each alarm once.
func (c *Cluster) collectAlarms(hosts []Host) {
	for i := range hosts {
		view := &hosts[i].View
		if !view.Answered {
			continue
		}

		if _, ok := c.Member(view.Self); !ok {
			continue
		}

		for _, alarm := range view.Alarms {
			if !slices.Contains(c.Alarms, alarm) {
				c.Alarms = append(c.Alarms, alarm)
			}
		}
	}

	slices.SortFunc(c.Alarms, func(a, b Alarm) int { return cmp.Or(cmp.Compare(a.Member, b.Member), strings.Compare(a.Type, b.Type)) })
}

// judge says of each member whether it is healthy.
func (c *Cluster) judge() {
	var farthest uint64

	for _, m := range c.Members {
		if view, ok := c.own(m); ok {
			farthest = max(farthest, view.Applied)
		}
	}

	for i := range c.Members {
		c.Members[i].Problem = c.problem(c.Members[i], farthest)
	}
}

// own is what a member's own node says now.
func (c *Cluster) own(m MemberState) (*View, bool) {
	if m.Evidence != BySelf {
		return nil, false
	}

	return &c.hosts[m.Host].View, true
}

// problem says what is wrong with a member. It is the same as long as that is: no number in it changes by itself.
func (c *Cluster) problem(m MemberState, farthest uint64) string {
	for _, alarm := range c.Alarms {
		if alarm.Member == m.ID {
			return "has the alarm " + alarm.Type
		}
	}

	view, ok := c.own(m)

	switch {
	case m.Name == "":
		return "has not started"
	case !ok:
		return c.silence(m)
	case view.Leader == 0:
		return "follows no leader"
	case c.Leader != 0 && view.Leader != c.Leader:
		return "follows another leader than the quorum"
	case len(view.Errors) > 0 && len(c.Alarms) == 0:
		return view.Errors[0]
	case farthest-view.Applied > maxLag:
		return fmt.Sprintf("is more than %d entries behind", maxLag)
	default:
		return ""
	}
}

// silence says why a member's own node tells nothing of it.
func (c *Cluster) silence(m MemberState) string {
	h := c.hosts[m.Host]

	switch {
	case m.Evidence < ByNameAndAddress || h == nil:
		return "no Machine is known to run it"
	case m.Left && h.View.Self != 0:
		return "is of an earlier life of its node, which runs another"
	case m.Left:
		return "has lost its data"
	case !h.View.Answered && h.View.Problem != "":
		return "its node does not answer: " + h.View.Problem
	case !h.View.Answered:
		return "its node does not answer"
	case h.View.Problem != "":
		return "does not run: " + h.View.Problem
	default:
		return "does not run on its node"
	}
}
