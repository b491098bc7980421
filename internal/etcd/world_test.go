// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"fmt"
	"slices"

	"github.com/maesh-dev/ichor/internal/etcd"
)

// world is a control plane of cp1, cp2 and so on, with members 1, 2 and so on, all well, led by member 1. Tests break it.
func world(n int) []etcd.Host {
	var members []etcd.Member
	for i := range n {
		members = append(members, member(i+1))
	}

	hosts := make([]etcd.Host, 0, n)
	for i := range n {
		hosts = append(hosts, host(i+1, members))
	}

	return hosts
}

func member(i int) etcd.Member {
	return etcd.Member{ID: etcd.MemberID(i), Name: fmt.Sprintf("cp%d", i), PeerURLs: []string{fmt.Sprintf("https://10.0.0.%d:2380", i)}}
}

func host(i int, members []etcd.Member) etcd.Host {
	name := fmt.Sprintf("cp%d", i)

	return etcd.Host{
		Name: name, NodeName: name,
		Addresses: []string{fmt.Sprintf("10.0.0.%d", i)},
		Recorded:  []etcd.MemberID{etcd.MemberID(i)},
		View: etcd.View{
			Answered: true, Data: etcd.DataPresent, Self: etcd.MemberID(i), Members: slices.Clone(members), Leader: 1, Applied: 1000,
		},
	}
}

// silent makes a node answer no more.
func silent(hosts []etcd.Host, names ...string) []etcd.Host {
	for i := range hosts {
		if slices.Contains(names, hosts[i].Name) {
			hosts[i].View = etcd.View{Problem: "connection refused"}
		}
	}

	return hosts
}

// led has everybody follow another leader.
func led(hosts []etcd.Host, leader etcd.MemberID) []etcd.Host {
	for i := range hosts {
		if hosts[i].View.Answered {
			hosts[i].View.Leader = leader
		}
	}

	return hosts
}

// changed has every node that answers report other members.
func changed(hosts []etcd.Host, change func([]etcd.Member) []etcd.Member) []etcd.Host {
	for i := range hosts {
		if hosts[i].View.Answered && len(hosts[i].View.Members) > 0 {
			hosts[i].View.Members = change(slices.Clone(hosts[i].View.Members))
		}
	}

	return hosts
}

// with adds a member to every list.
func with(hosts []etcd.Host, m etcd.Member) []etcd.Host {
	return changed(hosts, func(members []etcd.Member) []etcd.Member { return append(members, m) })
}

// edited changes one host.
func edited(hosts []etcd.Host, name string, edit func(*etcd.Host)) []etcd.Host {
	for i := range hosts {
		if hosts[i].Name == name {
			edit(&hosts[i])
		}
	}

	return hosts
}
