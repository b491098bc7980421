// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"net/netip"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

var errNoAddress = errors.New("leaves no address, since what begins with ! takes all others out: name a network that the machines have addresses in")

// everything is what addresses are chosen from where a list has nothing but exceptions.
var everything = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

// emptyChoices finds lists of networks to choose a machine's address from that leave none: etcd, and the kubelet, would wait for one for ever.
func emptyChoices(documents []config.Document) []finding {
	var findings []finding

	look := func(id merge.ID, field string, networks []string) {
		if leavesNothing(networks) {
			findings = append(findings, finding{document: id, field: field, err: errNoAddress})
		}
	}

	legacyID := merge.ID{Kind: merge.LegacyKind}
	machine, cluster := legacyOf(documents)

	if cluster.EtcdConfig != nil {
		look(legacyID, "/cluster/etcd/advertisedSubnets", cluster.EtcdConfig.EtcdAdvertisedSubnets)
		look(legacyID, "/cluster/etcd/listenSubnets", cluster.EtcdConfig.EtcdListenSubnets)
	}

	if kubelet := machine.MachineKubelet; kubelet != nil && kubelet.KubeletNodeIP != nil {
		look(legacyID, "/machine/kubelet/nodeIP/validSubnets", kubelet.KubeletNodeIP.KubeletNodeIPValidSubnets)
	}

	if node, ok := documentOf[*k8s.KubeNodeConfigV1Alpha1](documents); ok {
		look(merge.IDOf(node), "/nodeIP/validSubnets", node.NodeIPConfig.NodeIPValidSubnets)
	}

	return findings
}

// leavesNothing tells a list whose exceptions cover all that it names. What cannot be read Talos refuses itself.
func leavesNothing(networks []string) bool {
	var named, exceptions []netip.Prefix

	for _, each := range networks {
		text, except := strings.CutPrefix(each, "!")

		network, err := netip.ParsePrefix(text)
		if err != nil {
			return false
		}

		if except {
			exceptions = append(exceptions, network.Masked())
		} else {
			named = append(named, network.Masked())
		}
	}

	if len(named) == 0 {
		named = everything
	}

	return !slices.ContainsFunc(named, func(network netip.Prefix) bool {
		return !slices.ContainsFunc(exceptions, func(except netip.Prefix) bool {
			return except.Bits() <= network.Bits() && except.Contains(network.Addr())
		})
	})
}
