// SPDX-License-Identifier: Apache-2.0

package talos

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

// Reach says how the nodes of a cluster are reached.
type Reach struct {
	// API is spec.talosAPI of the TalosClusterConfig. Its zero value is right for a cluster without one.
	API bootstrapv1.TalosAPISpec

	// Endpoint is the host of the Cluster's control-plane endpoint. It is that of several machines, and never dialled.
	Endpoint string
}

// candidate is a way to a node.
type candidate struct {
	// dial is the address with its port.
	dial string

	// node is the address to which the one that is dialled passes calls on; empty when that is the node itself.
	node string
}

func (c candidate) String() string {
	if c.node != "" {
		return c.node + " through " + c.dial
	}

	return c.dial
}

// maxCandidates bounds the ways that are tried to one node.
const maxCandidates = 6

// defaultAddressTypes are the addresses that are used when the user does not say which. Names are not among them: what they resolve to is
// often that of several machines.
var defaultAddressTypes = []clusterv1.MachineAddressType{clusterv1.MachineInternalIP, clusterv1.MachineExternalIP}

// candidates are the ways to a machine's node, the best first. Without any, why says what is wrong with its addresses; with more than are
// tried, it says how many are left out.
func (r Reach) candidates(m *Machine, shared map[string][]string) (ways []candidate, why string) {
	targets, why := r.targets(m, shared)

	if len(r.API.Endpoints) == 0 {
		for _, target := range targets {
			ways = append(ways, candidate{dial: net.JoinHostPort(target, strconv.Itoa(constants.ApidPort))})
		}
	}

	// Every address and every endpoint comes in as early as it can: one that leads nowhere must not take all the tries. When both are through at the
	// same time, the pairs would be the same again.
	shift := 0

	for k := range len(targets) * len(r.API.Endpoints) {
		target, endpoint := k%len(targets), k%len(r.API.Endpoints)
		if k > 0 && target == 0 && endpoint == 0 {
			shift++
		}

		ways = append(ways, candidate{dial: withPort(r.API.Endpoints[(endpoint+shift)%len(r.API.Endpoints)]), node: targets[target]})
	}

	if more := len(ways) - maxCandidates; more > 0 {
		ways = ways[:maxCandidates]
		why = fmt.Sprintf("ways to it that were not tried: %d (spec.talosAPI.cidrs of the TalosClusterConfig says which addresses are used)", more)
	}

	return ways, why
}

// targets are a machine's own addresses.
func (r Reach) targets(m *Machine, shared map[string][]string) (targets []string, why string) {
	types := r.API.AddressTypes
	if len(types) == 0 {
		types = defaultAddressTypes
	}

	var refused []string

	for _, kind := range types {
		for _, address := range m.Addresses {
			if address.Type != kind {
				continue
			}

			host, reason := r.usable(m, address, shared)

			switch {
			case reason != "":
				refused = append(refused, fmt.Sprintf("%s %s", address.Address, reason))
			case !slices.Contains(targets, host):
				targets = append(targets, host)
			}
		}
	}

	switch {
	case len(targets) > 0:
		return targets, ""
	case len(m.Addresses) == 0:
		return nil, "it has no address yet (its infrastructure machine reports none in status.addresses; some platforms need a guest agent for that)"
	case len(refused) == 0:
		return nil, fmt.Sprintf("it has no address of the types %s; spec.talosAPI.addressTypes of the TalosClusterConfig says which are used", joined(types))
	default:
		slices.Sort(refused)

		return nil, "it has no address of its own that can be used: " + strings.Join(slices.Compact(refused), ", ")
	}
}

// usable is an address in the form that is dialled, or why it is not.
func (r Reach) usable(m *Machine, address clusterv1.MachineAddress, shared map[string][]string) (host, reason string) {
	host = canonical(address.Address)

	ip, err := netip.ParseAddr(host)
	named := err != nil

	switch {
	case named && isIPType(address.Type):
		return "", "is no IP address"
	case named && len(r.API.CIDRs) > 0:
		return "", "is not in spec.talosAPI.cidrs of the TalosClusterConfig"
	case !named && (ip.IsUnspecified() || ip.IsMulticast() || ip.IsLinkLocalUnicast()):
		return "", "is not one to dial"
	case !named && !inAny(ip, r.API.CIDRs):
		return "", "is not in spec.talosAPI.cidrs of the TalosClusterConfig"
	case host == canonical(r.Endpoint) && !slices.ContainsFunc(r.API.Endpoints, func(endpoint string) bool { return hostOf(endpoint) == host }):
		return "", "is the control-plane endpoint (if it is the machine's alone, name it in spec.talosAPI.endpoints of the TalosClusterConfig)"
	}

	if others := slices.DeleteFunc(slices.Clone(shared[host]), func(name string) bool { return name == m.Name }); len(others) > 0 {
		return "", "is the address of Machine " + others[0] + ", too"
	}

	return host, ""
}

// sharedAddresses are the addresses with the machines that have them.
func sharedAddresses(machines []Machine) map[string][]string {
	owners := map[string][]string{}

	for i := range machines {
		for _, address := range machines[i].Addresses {
			host := canonical(address.Address)
			if !slices.Contains(owners[host], machines[i].Name) {
				owners[host] = append(owners[host], machines[i].Name)
			}
		}
	}

	for _, names := range owners {
		slices.Sort(names)
	}

	return owners
}

// canonical is one form of an address: that of an IP address, or a name in lower case.
func canonical(address string) string {
	if ip, err := netip.ParseAddr(strings.Trim(address, "[]")); err == nil {
		return ip.Unmap().String()
	}

	return strings.ToLower(strings.TrimSuffix(address, "."))
}

func isIPType(kind clusterv1.MachineAddressType) bool {
	return kind == clusterv1.MachineInternalIP || kind == clusterv1.MachineExternalIP
}

// inAny is true also without networks to be in.
func inAny(ip netip.Addr, networks []string) bool {
	return len(networks) == 0 || slices.ContainsFunc(networks, func(text string) bool {
		network, err := netip.ParsePrefix(text)

		return err == nil && network.Contains(ip)
	})
}

// withPort adds the Talos API's port to a host that has none.
func withPort(endpoint string) string {
	if _, _, err := net.SplitHostPort(endpoint); err == nil {
		return endpoint
	}

	return net.JoinHostPort(strings.Trim(endpoint, "[]"), strconv.Itoa(constants.ApidPort))
}

func hostOf(endpoint string) string {
	host, _, err := net.SplitHostPort(withPort(endpoint))
	if err != nil {
		return ""
	}

	return canonical(host)
}

func joined(types []clusterv1.MachineAddressType) string {
	names := make([]string, len(types))
	for i, kind := range types {
		names[i] = string(kind)
	}

	return strings.Join(names, ", ")
}
