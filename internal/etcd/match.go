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
		m.Left = m.Evidence == ByRecord && c.host(m.Host).denies(m.Member)
		m.Pending = m.Evidence == ByNameAndAddress && m.Name == "" && c.host(m.Host).empty()
	}
}

// claimants are the machines that something speaks for. Mostly there is one.
type claimants struct {
	first  string
	others []string
}

func (c *claimants) add(name string) {
	if c.first == "" {
		c.first = name
	} else {
		c.others = append(c.others, name)
	}
}

func (c *claimants) none() bool { return c.first == "" }

func (c *claimants) one() bool { return c.first != "" && len(c.others) == 0 }

// evidence is what speaks for machines to have a member.
type evidence struct{ self, record, address, name claimants }

func gather(m Member, hosts []Host) evidence {
	var (
		e      evidence
		denied claimants
		buffer [4]netip.Addr
	)

	addresses := appendPeers(buffer[:0], m.PeerURLs)

	for i := range hosts {
		h := &hosts[i]
		denies := h.denies(m)

		if h.View.Answered && h.View.Self == m.ID {
			e.self.add(h.Name)
		}

		switch recorded := slices.Contains(h.Recorded, m.ID); {
		case recorded && denies:
			denied.add(h.Name)
		case recorded:
			e.record.add(h.Name)
		}

		if denies {
			continue // its own word is stronger than a name, or an address that it may have from a machine of before
		}

		if h.at(addresses) {
			e.address.add(h.Name)
		}

		if h.named(m) {
			e.name.add(h.Name)
		}
	}

	if e.record.none() {
		e.record = denied
	}

	return e
}

// at is true for a machine with one of some addresses.
func (h *Host) at(addresses []netip.Addr) bool {
	for _, text := range h.Addresses {
		if address, err := netip.ParseAddr(text); err == nil && slices.Contains(addresses, address.Unmap()) {
			return true
		}
	}

	return false
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
		return h.empty() && m.Name != "" && (!m.Learner || !h.named(m))
	}
}

// strongest chooses among what speaks for machines. Ambiguous strong evidence counts as weak: it protects and decides nothing.
func (e *evidence) strongest(unstarted bool) (string, Evidence, []string) {
	switch {
	case e.self.one():
		return e.self.first, BySelf, nil
	case !e.self.none():
		return weak(e.self)
	case e.record.one():
		return e.record.first, ByRecord, nil
	case !e.record.none():
		return weak(e.record)
	case e.address.one() && (unstarted || (e.name.one() && e.name.first == e.address.first)):
		return e.address.first, ByNameAndAddress, nil
	default:
		return weak(e.address, e.name)
	}
}

func weak(all ...claimants) (string, Evidence, []string) {
	var candidates []string

	for _, each := range all {
		if !each.none() {
			candidates = append(append(candidates, each.first), each.others...)
		}
	}

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
	for _, address := range appendPeers(nil, peerURLs) {
		out = append(out, address.String())
	}

	return out
}

func appendPeers(to []netip.Addr, peerURLs []string) []netip.Addr {
	for _, peer := range peerURLs {
		if address, ok := peerAddress(peer); ok {
			to = append(to, address.Unmap())
		}
	}

	return to
}

func peerAddress(peer string) (netip.Addr, bool) {
	// Nearly all are just that, and need no URL parsed.
	if _, rest, ok := strings.Cut(peer, "://"); ok {
		if address, err := netip.ParseAddrPort(rest); err == nil {
			return address.Addr(), true
		}
	}

	parsed, err := url.Parse(peer)
	if err != nil {
		return netip.Addr{}, false
	}

	address, err := netip.ParseAddr(parsed.Hostname())

	return address, err == nil
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

	return &c.host(m.Host).View, true
}

// problem says what is wrong with a member. It is the same as long as that is: no number in it changes by itself.
func (c *Cluster) problem(m MemberState, farthest uint64) string {
	var alarms []string

	for _, alarm := range c.Alarms {
		if alarm.Member == m.ID {
			alarms = append(alarms, "the alarm "+alarm.String())
		}
	}

	if len(alarms) > 0 {
		return "has " + strings.Join(alarms, " and ")
	}

	view, ok := c.own(m)

	switch {
	case m.Name == "":
		return c.unstarted(m)
	case !ok:
		return c.silence(m)
	case view.Leader == 0:
		return "follows no leader"
	case c.Leader != 0 && view.Leader != c.Leader:
		return "follows another leader than the quorum"
	case len(view.Errors) > 0 && len(c.Alarms) == 0:
		return "reports: " + view.Errors[0]
	case farthest-view.Applied > maxLag:
		return fmt.Sprintf("is more than %d entries behind", maxLag)
	default:
		return ""
	}
}

// unstarted says why a member has not started, as far as its node does.
func (c *Cluster) unstarted(m MemberState) string {
	if h := c.host(m.Host); m.Evidence >= ByNameAndAddress && h != nil && h.View.Problem != "" {
		return "has not started: " + h.View.Problem
	}

	return "has not started"
}

// silence says why a member's own node tells nothing of it.
func (c *Cluster) silence(m MemberState) string {
	h := c.host(m.Host)

	switch {
	case m.Evidence < ByNameAndAddress || h == nil:
		return "is on no Machine for certain"
	case m.Left && h.View.Self != 0:
		return "is of an earlier life of its node, which runs another"
	case m.Left:
		return "has lost its data"
	case !h.View.Answered && h.View.Problem != "":
		return "is on a node that tells nothing: " + h.View.Problem
	case !h.View.Answered:
		return "is on a node that tells nothing"
	case h.View.Problem != "":
		return "does not run: " + h.View.Problem
	default:
		return "does not run on its node"
	}
}
