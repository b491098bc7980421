// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
)

// linkName is the machine's only network interface beside the loopback one.
const linkName = "eth0"

// networkResources are the machine's name, addresses and links. They are there in maintenance mode too.
func (b *boot) networkResources() []resource.Resource {
	n := b.node
	hostname := network.NewHostnameStatus(network.NamespaceName, network.HostnameID)
	hostname.TypedSpec().Hostname = n.Name()
	if c := b.config(); c != nil {
		hostname.TypedSpec().Hostname = c.hostname(n)
	}
	link := network.NewLinkStatus(network.NamespaceName, linkName)
	link.TypedSpec().Index, link.TypedSpec().Type, link.TypedSpec().MTU = 2, nethelpers.LinkEther, 1500
	link.TypedSpec().LinkState, link.TypedSpec().OperationalState = true, nethelpers.OperStateUp
	link.TypedSpec().HardwareAddr, link.TypedSpec().PermanentAddr = n.hardwareAddress(), n.hardwareAddress()
	all := []resource.Resource{hostname, link}

	status := network.NewStatus(network.NamespaceName, network.StatusID)
	status.TypedSpec().AddressReady, status.TypedSpec().ConnectivityReady = true, true
	status.TypedSpec().HostnameReady, status.TypedSpec().EtcFilesReady = true, true
	all = append(all, status)

	ip, err := netip.ParseAddr(n.address)
	if err != nil {
		return all
	}
	prefix := netip.PrefixFrom(ip, 8)
	address := network.NewAddressStatus(network.NamespaceName, linkName+"/"+prefix.String())
	address.TypedSpec().Address, address.TypedSpec().LinkName = prefix, linkName
	address.TypedSpec().LinkIndex, address.TypedSpec().Family = 2, nethelpers.FamilyInet4
	all = append(all, address)
	for _, id := range []string{network.NodeAddressDefaultID, network.NodeAddressCurrentID, network.NodeAddressRoutedID} {
		node := network.NewNodeAddress(network.NamespaceName, id)
		node.TypedSpec().Addresses = []netip.Prefix{prefix}
		all = append(all, node)
	}
	return all
}

// hardwareAddress is made of the address, so that it is the machine's own and stays.
func (n *Node) hardwareAddress() nethelpers.HardwareAddr {
	ip := net.ParseIP(n.address).To4()
	if ip == nil {
		return nil
	}
	address, err := net.ParseMAC(fmt.Sprintf("52:54:%02x:%02x:%02x:%02x", ip[0], ip[1], ip[2], ip[3]))
	if err != nil {
		return nil
	}
	return nethelpers.HardwareAddr(address)
}
