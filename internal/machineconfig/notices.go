// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
	"github.com/maesh-dev/ichor/internal/storage"
)

// notices are what is allowed and probably not meant.
func (r *render) notices(merged *merge.Config) []string {
	var notices []string

	if !r.in.Machine.ControlPlane {
		for _, settings := range nodeSettingsOf(merged) {
			for _, key := range slices.Sorted(maps.Keys(settings.taints)) {
				notices = append(notices, fmt.Sprintf(
					"%s: %s: a worker registers this taint at its first boot only; change it later through spec.taints of the Machine",
					settings.id, settings.pointer("taints", key)))
			}
		}
	}

	for _, settings := range nodeSettingsOf(merged) {
		for _, unknown := range storage.UnknownDiskFields(settings.annotations[storage.LonghornDisksConfigAnnotation]) {
			notices = append(notices, fmt.Sprintf("%s: %s: %s",
				settings.id, settings.pointer("annotations", storage.LonghornDisksConfigAnnotation), unknown))
		}
	}

	notices = append(notices, harmfulMounts(merged.Documents())...)
	notices = append(notices, r.closedPorts(merged.Documents())...)
	notices = append(notices, flagTypos(merged.Documents())...)
	notices = append(notices, r.etcdNotices(merged.Documents())...)

	for _, warning := range r.talosWarnings {
		// What is older than a document for it is right where the machine's Talos has no such document. OldForms tells the others.
		if !strings.Contains(warning, "deprecated") {
			notices = append(notices, "Talos warns: "+warning)
		}
	}

	return notices
}

// closedPorts finds a firewall that lets nobody in to what a cluster cannot do without. Who may come in is not looked at: that depends on the
// network.
func (r *render) closedPorts(documents []config.Document) []string {
	firewall, ok := documentOf[*network.DefaultActionConfigV1Alpha1](documents)
	if !ok || firewall.Ingress != nethelpers.DefaultActionBlock {
		return nil
	}

	type use struct {
		port uint16
		what string
	}

	needed := []use{{constants.ApidPort, "the Talos API, without which the machine can neither be upgraded nor repaired"}, {constants.KubeletPort, "the kubelet"}}

	if r.in.Machine.ControlPlane {
		needed = append(needed,
			use{uint16(serverPort(documents)), "the API server"}, //nolint:gosec // a port
			use{constants.TrustdPort, "trustd, by which workers get their certificates"},
			use{constants.EtcdClientPort, "etcd"}, use{constants.EtcdPeerPort, "etcd's other members"},
		)
	}

	var closed []string

	for _, each := range needed {
		if !opens(documents, each.port) {
			closed = append(closed, fmt.Sprintf("%d (%s)", each.port, each.what))
		}
	}

	if len(closed) == 0 {
		return nil
	}

	return []string{fmt.Sprintf("%s: /ingress: blocks, and no NetworkRuleConfig opens the TCP port %s", merge.IDOf(firewall), strings.Join(closed, ", "))}
}

func opens(documents []config.Document, port uint16) bool {
	return slices.ContainsFunc(documents, func(document config.Document) bool {
		rule, ok := document.(*network.RuleConfigV1Alpha1)

		return ok && rule.PortSelector.Protocol == nethelpers.ProtocolTCP && len(rule.Ingress) > 0 &&
			slices.ContainsFunc(rule.PortSelector.Ports, func(ports network.PortRange) bool { return ports.Lo <= port && port <= ports.Hi })
	})
}
