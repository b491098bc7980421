// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"fmt"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/config/types/cluster"
	"github.com/siderolabs/talos/pkg/machinery/config/types/cri"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"go.yaml.in/yaml/v4"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
	"github.com/maesh-dev/ichor/internal/version"
)

// moved is a setting that the legacy document had and that a newer config format has in a document of its own. Talos refuses
// both in one config, in words that do not say where the setting goes.
type moved struct {
	// pointer of the setting in the legacy document.
	pointer string

	// kind of the document that Talos does not want beside it, with its name where only that one is refused.
	kind string

	// since is the minor of the first contract with the setting in the document.
	since int

	// write is where it goes there: kind and field, or what to do instead.
	write string
}

// movedSettings are the settings that Talos refuses in two places at once, from the rules of machinery's V1Alpha1ConflictValidate. A
// row whose pointer is above that of another row speaks only when no deeper one does. The kinds that no patch may touch
// are left out: they are refused before.
var movedSettings = []moved{
	{"/machine/install", runtime.UnattendedInstallConfigKind, 14, "spec.install of the TalosConfig, or UnattendedInstallConfig (installer, provisioning)"},

	{"/machine/kubelet", k8s.KubeletConfig, 14, "KubeletConfig, and KubeNodeConfig for what concerns the Node"},
	{"/machine/kubelet/image", k8s.KubeletConfig, 14, "KubeletConfig (image)"},
	{"/machine/kubelet/clusterDNS", k8s.KubeletConfig, 14, "KubeletConfig (clusterDNS)"},
	{"/machine/kubelet/extraArgs", k8s.KubeletConfig, 14, "KubeletConfig (extraArgs)"},
	{"/machine/kubelet/extraConfig", k8s.KubeletConfig, 14, "KubeletConfig (config)"},
	{"/machine/kubelet/extraMounts", k8s.KubeletConfig, 14, "a volume document such as UserVolumeConfig, which Talos mounts into the kubelet itself"},
	{"/machine/kubelet/defaultRuntimeSeccompProfileEnabled", k8s.KubeletConfig, 14, "KubeletConfig (defaultRuntimeSeccompProfileEnabled)"},
	{"/machine/kubelet/credentialProviderConfig", k8s.KubeletConfig, 14, "KubeCredentialProviderConfig (configuration)"},
	{"/machine/kubelet/nodeIP", k8s.KubeletConfig, 14, "KubeNodeConfig (nodeIP)"},
	{"/machine/kubelet/registerWithFQDN", k8s.KubeletConfig, 14, "KubeNodeConfig (registerWithFQDN)"},
	{"/machine/kubelet/skipNodeRegistration", k8s.KubeletConfig, 14, "KubeNodeConfig (skipNodeRegistration)"},
	{"/machine/kubelet", k8s.KubeCredentialProviderConfig, 14, "KubeletConfig, beside KubeCredentialProviderConfig"},

	{"/machine/kubelet/nodeIP", k8s.KubeNodeConfig, 14, "KubeNodeConfig (nodeIP)"},
	{"/machine/kubelet/registerWithFQDN", k8s.KubeNodeConfig, 14, "KubeNodeConfig (registerWithFQDN)"},
	{"/machine/kubelet/skipNodeRegistration", k8s.KubeNodeConfig, 14, "KubeNodeConfig (skipNodeRegistration)"},
	{"/machine/nodeLabels", k8s.KubeNodeConfig, 14, "KubeNodeConfig (labels)"},
	{"/machine/nodeAnnotations", k8s.KubeNodeConfig, 14, "KubeNodeConfig (annotations)"},
	{"/machine/nodeTaints", k8s.KubeNodeConfig, 14, "KubeNodeConfig (taints)"},
	{"/cluster/allowSchedulingOnControlPlanes", k8s.KubeNodeConfig, 14, "spec.allowSchedulingOnControlPlanes of the TalosClusterConfig, or KubeNodeConfig (taints)"},
	{"/cluster/allowSchedulingOnMasters", k8s.KubeNodeConfig, 14, "spec.allowSchedulingOnControlPlanes of the TalosClusterConfig, or KubeNodeConfig (taints)"},

	{"/cluster/apiServer", k8s.KubeAPIServerConfig, 14, "KubeAPIServerConfig"},
	{"/cluster/apiServer/image", k8s.KubeAPIServerConfig, 14, "KubeAPIServerConfig (image)"},
	{"/cluster/apiServer/extraArgs", k8s.KubeAPIServerConfig, 14, "KubeAPIServerConfig (extraArgs)"},
	{"/cluster/apiServer/env", k8s.KubeAPIServerConfig, 14, "KubeAPIServerConfig (env)"},
	{"/cluster/apiServer/resources", k8s.KubeAPIServerConfig, 14, "KubeAPIServerConfig (resources)"},
	{"/cluster/apiServer/certSANs", k8s.KubeAPIServerConfig, 14, "spec.certSANs of the TalosClusterConfig, or KubeAPIServerConfig (certExtraSANs)"},
	{"/cluster/apiServer/admissionControl", k8s.KubeAPIServerConfig, 14, "a KubeAdmissionControlConfig for each plugin"},
	{"/cluster/apiServer/auditPolicy", k8s.KubeAPIServerConfig, 14, "KubeAuditPolicyConfig (configuration)"},
	{"/cluster/apiServer/authorizationConfig", k8s.KubeAPIServerConfig, 14, "a KubeAuthorizerConfig for each authorizer"},
	{"/cluster/controlPlane/localAPIServerPort", k8s.KubeAPIServerConfig, 14, "KubeAPIServerConfig (apiPort)"},
	{"/cluster/apiServer/admissionControl", k8s.KubeAdmissionControlConfig, 14, "a KubeAdmissionControlConfig for each plugin"},
	{"/cluster/apiServer/admissionControl", k8s.KubeAuthorizerConfig, 14, "a KubeAdmissionControlConfig for each plugin"},
	{"/cluster/apiServer/auditPolicy", k8s.KubeAuditPolicyConfig, 14, "KubeAuditPolicyConfig (configuration)"},

	{"/cluster/controllerManager", k8s.KubeControllerManagerConfig, 14, "KubeControllerManagerConfig"},
	{"/cluster/controllerManager/image", k8s.KubeControllerManagerConfig, 14, "KubeControllerManagerConfig (image)"},
	{"/cluster/controllerManager/extraArgs", k8s.KubeControllerManagerConfig, 14, "KubeControllerManagerConfig (extraArgs)"},
	{"/cluster/controllerManager/env", k8s.KubeControllerManagerConfig, 14, "KubeControllerManagerConfig (env)"},
	{"/cluster/controllerManager/resources", k8s.KubeControllerManagerConfig, 14, "KubeControllerManagerConfig (resources)"},
	{"/machine/controlPlane/controllerManager", k8s.KubeControllerManagerConfig, 14, "KubeControllerManagerConfig (enabled)"},

	{"/cluster/scheduler", k8s.KubeSchedulerConfig, 14, "KubeSchedulerConfig"},
	{"/cluster/scheduler/image", k8s.KubeSchedulerConfig, 14, "KubeSchedulerConfig (image)"},
	{"/cluster/scheduler/extraArgs", k8s.KubeSchedulerConfig, 14, "KubeSchedulerConfig (extraArgs)"},
	{"/cluster/scheduler/env", k8s.KubeSchedulerConfig, 14, "KubeSchedulerConfig (env)"},
	{"/cluster/scheduler/resources", k8s.KubeSchedulerConfig, 14, "KubeSchedulerConfig (resources)"},
	{"/cluster/scheduler/config", k8s.KubeSchedulerConfig, 14, "KubeSchedulerConfig (config)"},
	{"/machine/controlPlane/scheduler", k8s.KubeSchedulerConfig, 14, "KubeSchedulerConfig (enabled)"},

	{"/cluster/proxy", k8s.KubeProxyConfig, 14, "KubeProxyConfig"},
	{"/cluster/proxy/disabled", k8s.KubeProxyConfig, 14, "spec.network.kubeProxy of the TalosClusterConfig, or KubeProxyConfig (enabled)"},
	{"/cluster/proxy/image", k8s.KubeProxyConfig, 14, "KubeProxyConfig (image)"},
	{"/cluster/proxy/mode", k8s.KubeProxyConfig, 14, "KubeProxyConfig (mode)"},
	{"/cluster/proxy/extraArgs", k8s.KubeProxyConfig, 14, "KubeProxyConfig (extraArgs)"},

	{"/cluster/network", k8s.KubeNetworkConfig, 14, "KubeNetworkConfig"},
	{"/cluster/network/cni", k8s.KubeNetworkConfig, 14, "spec.network.cni of the TalosClusterConfig, or KubeFlannelCNIConfig"},
	{"/cluster/network/dnsDomain", k8s.KubeNetworkConfig, 14, "spec.clusterNetwork of the Cluster"},
	{"/cluster/network/podSubnets", k8s.KubeNetworkConfig, 14, "spec.clusterNetwork of the Cluster"},
	{"/cluster/network/serviceSubnets", k8s.KubeNetworkConfig, 14, "spec.clusterNetwork of the Cluster"},
	{"/cluster/network", k8s.KubeFlannelCNIConfig, 14, "KubeNetworkConfig"},
	{"/cluster/network/cni", k8s.KubeFlannelCNIConfig, 14, "spec.network.cni of the TalosClusterConfig, or KubeFlannelCNIConfig"},

	{"/cluster/coreDNS", k8s.KubeCoreDNSConfig, 14, "KubeCoreDNSConfig"},
	{"/cluster/coreDNS/disabled", k8s.KubeCoreDNSConfig, 14, "KubeCoreDNSConfig (enabled)"},
	{"/cluster/coreDNS/image", k8s.KubeCoreDNSConfig, 14, "KubeCoreDNSConfig (image)"},

	{"/machine/features/kubePrism", k8s.KubePrismConfig, 14, "spec.network.kubePrismPort of the TalosClusterConfig, or KubePrismConfig (port)"},
	{"/machine/features/kubernetesTalosAPIAccess", k8s.KubeTalosAPIAccessConfig, 14, "KubeTalosAPIAccessConfig"},

	{"/machine/network/hostname", network.HostnameKind, 12, "HostnameConfig (hostname)"},
	{"/machine/features/stableHostname", network.HostnameKind, 12, "HostnameConfig (auto)"},
	{"/machine/network/nameservers", network.ResolverKind, 12, "ResolverConfig (nameservers)"},
	{"/machine/network/searchDomains", network.ResolverKind, 12, "ResolverConfig (searchDomains.domains)"},
	{"/machine/network/disableSearchDomain", network.ResolverKind, 12, "ResolverConfig (searchDomains.disableDefault)"},
	{"/machine/features/hostDNS", network.ResolverKind, 14, "ResolverConfig (hostDNS)"},
	{"/machine/time/disabled", network.TimeSyncKind, 12, "TimeSyncConfig (enabled)"},
	{"/machine/time/servers", network.TimeSyncKind, 12, "TimeSyncConfig (ntp.servers)"},
	{"/machine/time/bootTimeout", network.TimeSyncKind, 12, "TimeSyncConfig (bootTimeout)"},
	{"/machine/network/kubespan", network.KubeSpanKind, 13, "KubeSpanConfig"},

	{"/cluster/discovery", cluster.DiscoveryServiceKind, 14, "DiscoveryServiceConfig (endpoint)"},
	{"/machine/baseRuntimeSpecOverrides", cri.CRIBaseRuntimeSpecConfigKind, 14, "CRIBaseRuntimeSpecConfig (overrides)"},
	{"/machine/systemDiskEncryption/state", block.VolumeConfigKind + "/" + constants.StatePartitionLabel, 11, "VolumeConfig STATE (encryption)"},
	{"/machine/systemDiskEncryption/ephemeral", block.VolumeConfigKind + "/" + constants.EphemeralPartitionLabel, 11, "VolumeConfig EPHEMERAL (encryption)"},
	{"/machine/features/imageCache", cri.ImageCacheConfig, 14, "ImageCacheConfig"},
}

// misplaced finds settings that stand both in the legacy document and in one of their own, and says which of the two the contract has
// and where the other's content goes. Documents are those of a whole config.
func misplaced(contract version.Contract, documents []config.Document) []finding {
	legacyDocument, ok := documentOf[*v1alpha1.Config](documents)
	if !ok {
		return nil
	}

	refused := map[string]merge.ID{}

	for _, document := range documents {
		if validator, ok := document.(container.V1Alpha1ConflictValidator); ok && validator.V1Alpha1ConflictValidate(legacyDocument) != nil {
			id := merge.IDOf(document)
			refused[document.Kind()], refused[id.String()] = id, id
		}
	}

	if len(refused) == 0 {
		return nil
	}

	settings, err := tree(legacyDocument)
	if err != nil {
		return []finding{{document: merge.ID{Kind: merge.LegacyKind}, err: err}}
	}

	var present []moved

	for _, row := range movedSettings {
		if _, ok := refused[row.kind]; ok && isSet(settings, row.pointer) {
			present = append(present, row)
		}
	}

	var findings []finding

	for _, row := range present {
		if slices.ContainsFunc(present, func(other moved) bool {
			return strings.HasPrefix(other.pointer, row.pointer+"/")
		}) {
			continue
		}

		found := row.finding(contract, refused[row.kind])
		if !slices.ContainsFunc(findings, found.same) {
			findings = append(findings, found)
		}
	}

	return findings
}

// finding says what to do: the contract has the setting in one of the two places, and there it belongs.
func (m moved) finding(contract version.Contract, modern merge.ID) finding {
	if contract.AtLeast(m.since) {
		return finding{
			document: merge.ID{Kind: merge.LegacyKind}, field: m.pointer,
			err: fmt.Errorf("config contract %s has this in a document of its own: write it as %s", contract, m.write),
		}
	}

	return finding{
		document: modern,
		err:      fmt.Errorf("config contract %s has this in the legacy document: write it as %s %s", contract, merge.LegacyKind, m.pointer),
	}
}

// MovedField says where a setting is written that the legacy document had under the last of the tokens, and a modern document of the
// kind does not have under that name. It is empty when nothing is known.
func MovedField(kind string, tokens []string) string {
	if len(tokens) != 1 {
		return ""
	}

	for _, row := range movedSettings {
		if row.kind == kind && strings.HasSuffix(row.pointer, "/"+tokens[0]) {
			return row.write
		}
	}

	return ""
}

// legacyPlaces are the pointers in the legacy document of what a modern document of the kind sets, for machines whose Talos does not
// know the kind. Fields are those at the top of the document. Where none of them is known the legacy part as a whole is named.
func legacyPlaces(kind string, fields []string) []string {
	var places, whole []string

	for _, row := range movedSettings {
		if row.kind != kind {
			continue
		}

		_, within, ok := strings.Cut(row.write, kind+" (")
		field, _, _ := strings.Cut(strings.TrimSuffix(within, ")"), ".")

		switch {
		case row.write == kind || strings.HasPrefix(row.write, kind+","):
			whole = append(whole, row.pointer)
		case ok && slices.Contains(fields, field):
			places = append(places, row.pointer)
		}
	}

	if len(places) > 0 {
		return places
	}

	return whole
}

// tree is a document as maps and lists, with what is set in it.
func tree(document config.Document) (map[string]any, error) {
	data, err := encoder.NewEncoder(document, encoder.WithComments(encoder.CommentsDisabled)).Encode()
	if err != nil {
		return nil, fmt.Errorf("encode the document: %w", err)
	}

	settings := map[string]any{}
	if err = yaml.Unmarshal(data, &settings); err != nil {
		return nil, fmt.Errorf("decode the document: %w", err)
	}

	return settings, nil
}

// isSet says whether there is anything at the pointer. The encoder writes some empty texts and lists that nobody set; an empty map
// was set by somebody.
func isSet(settings map[string]any, pointer string) bool {
	var value any = settings

	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		parent, ok := value.(map[string]any)
		if !ok {
			return false
		}

		value = parent[token]
	}

	switch set := value.(type) {
	case nil:
		return false
	case string:
		return set != ""
	case []any:
		return len(set) > 0
	default:
		return true
	}
}
