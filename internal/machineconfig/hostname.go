// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"fmt"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

var hostnameConfig = merge.ID{Kind: network.HostnameKind}

func isHostname(document merge.PatchDocument) bool { return document.ID == hostnameConfig }

// finish does what follows the patches, so that every way to set a hostname is valid for every contract.
//
// When a patch sets it in the legacy document, the HostnameConfig that was generated goes: Talos refuses both, and what a user
// says wins. A HostnameConfig that a user wrote too stays, for Talos to refuse. When a HostnameConfig stays, the stable hostname
// of contracts 1.2 to 1.11 goes, which Talos refuses beside it.
func (r *render) finish(merged *merge.Config) error {
	machine, _ := legacyOf(merged.Documents())

	if !r.userHostname && machine.MachineNetwork != nil && machine.MachineNetwork.NetworkHostname != "" {
		if source := r.in.TalosConfig.Spec.Hostname.Source; source != "" && source != bootstrapv1.HostnameSourceAutomatic {
			r.warnings = append(r.warnings, fmt.Sprintf("%s layer: TalosConfig %s spec.hostname has no effect: a patch sets machine.network.hostname",
				LayerSystem, r.in.TalosConfig.Name))
		}

		_, err := merged.Delete(hostnameConfig, "", nil)

		return err
	}

	if err := r.checkHostname(merged.Documents()); err != nil {
		return err
	}

	_, modern := documentOf[*network.HostnameConfigV1Alpha1](merged.Documents())
	if !modern || machine.MachineFeatures == nil || machine.MachineFeatures.StableHostname == nil {
		return nil
	}

	_, err := merged.Delete(merge.ID{Kind: merge.LegacyKind}, "/machine/features/stableHostname", nil)

	return err
}

// maxHostLabel is how long what is before the first dot of a hostname may be.
const maxHostLabel = 63

// checkHostname refuses a generated hostname that would not name the node as its machine is named. Talos takes what follows the first dot for
// the domain, and names the Node by the rest: the machines of a pool "a.b" would all be the one Node "a".
func (r *render) checkHostname(documents []config.Document) error {
	hostname, ok := documentOf[*network.HostnameConfigV1Alpha1](documents)
	if !ok || r.userHostname {
		return nil
	}

	host, _, dotted := strings.Cut(hostname.ConfigHostname, ".")
	fault := ""

	switch {
	case len(host) > maxHostLabel:
		fault = fmt.Sprintf("has %d characters before the first dot, and a hostname at most %d: use %s, or give the machine a shorter name",
			len(host), maxHostLabel, bootstrapv1.HostnameSourceAutomatic)
	case dotted && !registersWithFQDN(documents):
		fault = fmt.Sprintf("has a dot, and Talos names the Node by what is before it, so that machines could be one Node: use %s, "+
			"give the machine a name without a dot, or set registerWithFQDN with a patch", bootstrapv1.HostnameSourceAutomatic)
	default:
		return nil
	}

	return &Error{
		Reason: ReasonRenderFailed,
		Source: Source{Layer: LayerSystem, Kind: KindTalosConfig, Name: r.in.TalosConfig.Name, Path: "spec.hostname"}, Field: "source",
		Err: fmt.Errorf("the name %q %s", hostname.ConfigHostname, fault),
	}
}

// registersWithFQDN says whether the Node is named by host and domain.
func registersWithFQDN(documents []config.Document) bool {
	machine, _ := legacyOf(documents)
	if kubelet := machine.MachineKubelet; kubelet != nil && kubelet.KubeletRegisterWithFQDN != nil {
		return *kubelet.KubeletRegisterWithFQDN
	}

	node, ok := documentOf[*k8s.KubeNodeConfigV1Alpha1](documents)

	return ok && node.RegisterWithFQDN()
}
