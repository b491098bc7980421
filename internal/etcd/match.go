// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// match finds each member's machine. The stronger evidence wins; of two machines with the same strong evidence neither does.
func (c *Cluster) match(hosts []Host) {
	bySelf, byRecord := map[MemberID][]string{}, map[MemberID][]string{}
	byAddress, byName := map[string][]string{}, map[string][]string{}

	for i := range hosts {
		h := &hosts[i]

		if h.View.Answered && h.View.Self != 0 {
			bySelf[h.View.Self] = append(bySelf[h.View.Self], h.Name)
		}

		for _, id := range h.Recorded {
			byRecord[id] = append(byRecord[id], h.Name)
		}

		for _, address := range h.Addresses {
			if parsed, err := netip.ParseAddr(address); err == nil {
				byAddress[parsed.Unmap().String()] = append(byAddress[parsed.Unmap().String()], h.Name)
			}
		}

		byName[strings.ToLower(h.Name)] = append(byName[strings.ToLower(h.Name)], h.Name)

		if h.NodeName != "" && !strings.EqualFold(h.NodeName, h.Name) {
			byName[strings.ToLower(h.NodeName)] = append(byName[strings.ToLower(h.NodeName)], h.Name)
		}
	}

	for i := range c.Members {
		m := &c.Members[i]
		m.Host, m.Evidence = strongest(
			bySelf[m.ID], byRecord[m.ID], addressed(m.PeerURLs, byAddress), byName[strings.ToLower(m.Name)], m.Name == "")
	}
}

// strongest chooses among what speaks for machines. Ambiguous strong evidence counts as weak: it protects and decides nothing.
func strongest(self, record, address, name []string, unstarted bool) (string, Evidence) {
	switch {
	case len(self) == 1:
		return self[0], BySelf
	case len(self) > 1:
		return self[0], ByNameOrAddress
	case len(record) == 1:
		return record[0], ByRecord
	case len(record) > 1:
		return record[0], ByNameOrAddress
	case len(address) == 1 && (unstarted || slices.Equal(name, address)):
		return address[0], ByNameAndAddress
	case len(address) > 0:
		return address[0], ByNameOrAddress
	case len(name) > 0:
		return name[0], ByNameOrAddress
	default:
		return "", NoEvidence
	}
}

// addressed are the machines at a member's peer URLs, each once.
func addressed(peerURLs []string, byAddress map[string][]string) []string {
	var out []string

	for _, address := range PeerAddresses(peerURLs) {
		out = append(out, byAddress[address]...)
	}

	slices.Sort(out)

	return slices.Compact(out)
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

	slices.SortFunc(c.Alarms, func(a, b Alarm) int {
		if a.Member != b.Member {
			return byID(Member{ID: a.Member}, Member{ID: b.Member})
		}

		return strings.Compare(a.Type, b.Type)
	})
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
func (c *Cluster) own(m MemberState) (View, bool) {
	if m.Evidence != BySelf {
		return View{}, false
	}

	return c.hosts[m.Host].View, true
}

func (c *Cluster) problem(m MemberState, farthest uint64) string {
	view, ok := c.own(m)

	for _, alarm := range c.Alarms {
		if alarm.Member == m.ID {
			return "alarm " + alarm.Type
		}
	}

	switch {
	case m.Name == "":
		return "has not started"
	case !ok:
		return c.silence(m)
	case len(view.Errors) > 0:
		return view.Errors[0]
	case view.Leader == 0:
		return "follows no leader"
	case c.Leader != 0 && view.Leader != c.Leader:
		return "follows another leader than the quorum"
	case farthest-view.Applied > maxLag:
		return fmt.Sprintf("is %d entries behind", farthest-view.Applied)
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
