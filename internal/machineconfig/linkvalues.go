// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"
	"unicode"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// The kernel's bounds of what links can have.
const (
	longestLinkName = 15
	smallestMTU     = 68
	largestMTU      = 65536
	bondTargets     = 16
)

// linkValues finds values of one document about a link that the kernel does not take. Talos takes them all, and tries for ever.
func (s *shapes) linkValues(document config.Document) {
	switch typed := document.(type) {
	case *network.BondConfigV1Alpha1:
		s.linkName(typed.MetaName)
		s.references("/links", typed.BondLinks)
		s.link("", &typed.CommonLinkConfig)
		s.bond(typed)
	case *network.BridgeConfigV1Alpha1:
		s.linkName(typed.MetaName)
		s.references("/links", typed.BridgeLinks)
		s.link("", &typed.CommonLinkConfig)
	case *network.DummyLinkConfigV1Alpha1:
		s.linkName(typed.MetaName)
		s.link("", &typed.CommonLinkConfig)
	case *network.LinkConfigV1Alpha1:
		s.reference("/name", typed.MetaName)
		s.link("", &typed.CommonLinkConfig)
	case *network.VethConfigV1Alpha1:
		s.link("", &typed.CommonLinkConfig)
		s.link("/peer", &typed.VethPeer.CommonLinkConfig)
	case *network.VLANConfigV1Alpha1:
		s.linkName(typed.MetaName)
		s.reference("/parent", typed.ParentLinkConfig)
		s.link("", &typed.CommonLinkConfig)
	case *network.VRFConfigV1Alpha1:
		s.linkName(typed.MetaName)
		s.references("/links", typed.VRFLinks)
		s.link("", &typed.CommonLinkConfig)
	case *network.WireguardConfigV1Alpha1:
		s.linkName(typed.MetaName)
		s.link("", &typed.CommonLinkConfig)
		s.wireguard(typed)
	default:
		s.onLinks(document)
	}
}

// onLinks looks at documents that are about links and make none.
func (s *shapes) onLinks(document config.Document) {
	switch typed := document.(type) {
	case *network.RoutingRuleConfigV1Alpha1:
		if from, to := typed.RuleSrc.Prefix, typed.RuleDst.Prefix; from.IsValid() && to.IsValid() && from.Addr().Is4() != to.Addr().Is4() {
			s.add("/dst", fmt.Errorf("%s and the source %s are of two address families, and no packet has both: write a rule for each", to, from))
		}
	case *network.DHCPv4ConfigV1Alpha1:
		s.reference("/name", typed.MetaName)
	case *network.DHCPv6ConfigV1Alpha1:
		s.reference("/name", typed.MetaName)
	case *network.EthernetConfigV1Alpha1:
		s.reference("/name", typed.MetaName)
	case *network.LinkAliasConfigV1Alpha1:
		s.reference("/name", typed.MetaName)
	case *network.Layer2VIPConfigV1Alpha1:
		s.reference("/link", typed.LinkName)
	case *network.HCloudVIPConfigV1Alpha1:
		s.reference("/link", typed.LinkName)
	case *network.BGPInstanceConfigV1Alpha1:
		for i, neighbor := range typed.BGPNeighborConfigs {
			if hold := neighbor.NeighborHoldTime; hold > 0 && hold < shortestHold {
				s.add(fmt.Sprintf("/neighbors/%d/holdTime", i), fmt.Errorf("is %s, and BGP takes %s and more, or 0s for none", hold, shortestHold))
			}
		}
	case *v1alpha1.Config:
		s.legacyLinks(typed)
	}
}

// shortestHold is BGP's own bound (RFC 4271).
const shortestHold = 3 * time.Second

func strangeInLink(r rune) bool { return r == '/' || unicode.IsSpace(r) || !unicode.IsPrint(r) }

// reference is for the name or alias of a link that is there, or that another document makes.
func (s *shapes) reference(pointer, link string) {
	if strings.ContainsFunc(link, strangeInLink) {
		s.add(pointer, errors.New("is no name of a link: it has no spaces and no '/', such as enp1s0"))
	}
}

func (s *shapes) references(pointer string, links []string) {
	for i, link := range links {
		s.reference(fmt.Sprintf("%s/%d", pointer, i), link)
	}
}

// linkName is for links that Talos makes. Others may be called by an alias, which may be longer.
func (s *shapes) linkName(name string) {
	if len(name) > longestLinkName || strings.Trim(name, ".") == "" && name != "" || strings.ContainsFunc(name, strangeInLink) || strings.Contains(name, ":") {
		s.add("/name", fmt.Errorf("is no name for a link: the kernel takes at most %d characters, without spaces, '/' and ':', such as bond0", longestLinkName))
	}
}

func (s *shapes) link(at string, link *network.CommonLinkConfig) {
	s.mtu(at+"/mtu", link.LinkMTU)

	for i, each := range link.LinkAddresses {
		if each.AddressAddress.Addr().IsMulticast() {
			s.add(fmt.Sprintf("%s/addresses/%d/address", at, i), errors.New("is a multicast address, which no link can have"))
		}
	}

	for i, route := range link.LinkRoutes {
		pointer := fmt.Sprintf("%s/routes/%d", at, i)
		s.mtu(pointer+"/mtu", route.RouteMTU)

		if route.RouteDestination == (meta.Prefix{}) && route.RouteGateway == (meta.Addr{}) {
			s.add(pointer, errors.New("leads nowhere: set gateway, destination, or both"))

			continue
		}

		s.route(pointer, route.RouteDestination.Prefix, route.RouteGateway.Addr, route.RouteSource.Addr)
	}
}

func (s *shapes) mtu(pointer string, mtu uint32) {
	if mtu != 0 && (mtu < smallestMTU || mtu > largestMTU) {
		s.add(pointer, fmt.Errorf("is %d, and the kernel takes %d to %d: 1500 is usual, 9000 with jumbo frames", mtu, smallestMTU, largestMTU))
	}
}

// route finds addresses of two families in one route.
func (s *shapes) route(pointer string, destination netip.Prefix, gateway, source netip.Addr) {
	family := destination.Addr()
	if !family.IsValid() {
		family = gateway
	}

	for _, part := range []struct {
		field   string
		address netip.Addr
	}{{"gateway", gateway}, {"source", source}} {
		if family.IsValid() && part.address.IsValid() && part.address.Is4() != family.Is4() {
			s.add(pointer+"/"+part.field, fmt.Errorf("%s is of another address family than the rest of the route: write an IPv4 and an IPv6 route", part.address))
		}
	}
}

// bond finds what keeps the kernel from making the bond at all.
func (s *shapes) bond(bond *network.BondConfigV1Alpha1) {
	targets := func(field string, addresses []netip.Addr, right func(netip.Addr) bool, family string) {
		for i, target := range addresses {
			if !right(target) {
				s.add(fmt.Sprintf("/%s/%d", field, i), fmt.Errorf("%s is no %s address", target, family))
			}
		}

		if len(addresses) > bondTargets {
			s.add("/"+field, fmt.Errorf("has %d addresses, and a bond takes %d", len(addresses), bondTargets))
		}
	}

	targets("arpIpTargets", bond.BondARPIPTargets, netip.Addr.Is4, "IPv4")
	targets("nsIp6Targets", bond.BondNSIP6Targets, netip.Addr.Is6, "IPv6")

	atMost(s, "/resendIGMP", bond.BondResendIGMP, 255)
	atMost(s, "/packetsPerSlave", bond.BondPacketsPerSlave, 65535)
	atMost(s, "/tlbLogicalLb", bond.BondTLBDynamicLB, 1)
	atMost(s, "/allSlavesActive", bond.BondAllSlavesActive, 1)
	atMost(s, "/adUserPortKey", bond.BondADUserPortKey, 1023)
}

// bondChecks finds bonds whose links are checked in two ways, or by asking nobody, and legacy ones without links. Patches may bring each a part
// of a bond.
func bondChecks(documents []config.Document) []finding {
	found := &shapes{}

	found.emptyBonds(documents)

	for _, document := range documents {
		bond, ok := document.(*network.BondConfigV1Alpha1)
		if !ok || bond.BondARPInterval == nil || *bond.BondARPInterval == 0 {
			continue
		}

		found.id = merge.IDOf(document)

		if bond.BondMIIMon != nil && *bond.BondMIIMon != 0 {
			found.add("/arpInterval", errors.New("checks the links in another way than miimon, and a bond takes one of the two: remove one"))
		}

		if len(bond.BondARPIPTargets)+len(bond.BondNSIP6Targets) == 0 {
			found.add("/arpInterval", errors.New("needs an address that answers: set arpIpTargets, or use miimon instead"))
		}
	}

	return found.findings
}

// emptyBonds finds bonds of the legacy document without links. Machinery finds those of a document of their own.
func (s *shapes) emptyBonds(documents []config.Document) {
	machine, _ := legacyOf(documents)
	if machine.MachineNetwork == nil {
		return
	}

	s.id = merge.ID{Kind: merge.LegacyKind}

	for i, device := range machine.MachineNetwork.NetworkInterfaces {
		if bond := device.DeviceBond; bond != nil && len(bond.BondInterfaces)+len(bond.BondDeviceSelectors) == 0 {
			s.add(fmt.Sprintf("/machine/network/interfaces/%d/bond/interfaces", i),
				errors.New("is empty, and the bond would carry nothing: name the links, or set deviceSelectors"))
		}
	}
}

func atMost[N uint8 | uint16 | uint32](s *shapes, pointer string, value *N, most N) {
	if value != nil && *value > most {
		s.add(pointer, fmt.Errorf("is %d, and the kernel takes at most %d", *value, most))
	}
}

// longestKeepalive is what WireGuard has room for.
const longestKeepalive = 65535 * time.Second

func (s *shapes) wireguard(link *network.WireguardConfigV1Alpha1) {
	peers, networks := map[string]int{}, map[netip.Prefix]int{}

	for i, peer := range link.WireguardPeers {
		at := fmt.Sprintf("/peers/%d", i)

		if first, double := peers[peer.WireguardPublicKey]; double && peer.WireguardPublicKey != "" {
			s.add(at+"/publicKey", fmt.Errorf("is the key of peer %d too, and WireGuard knows peers by their keys: write one peer with all its allowedIPs", first))

			continue
		}

		peers[peer.WireguardPublicKey] = i

		if keepalive := peer.WireguardPersistentKeepaliveInterval; keepalive > longestKeepalive {
			s.add(at+"/persistentKeepaliveInterval", fmt.Errorf("is %s, and WireGuard takes at most %d s: 25s is usual", keepalive, longestKeepalive/time.Second))
		}

		for j, network := range peer.WireguardAllowedIPs {
			if !network.IsValid() {
				continue
			}

			if first, double := networks[network.Masked()]; double && first != i {
				s.add(fmt.Sprintf("%s/allowedIPs/%d", at, j), fmt.Errorf("%s is behind peer %d too, and WireGuard sends it to one of the two: remove it from the other", network, first))
			}

			networks[network.Masked()] = i
		}
	}
}
