// SPDX-License-Identifier: Apache-2.0

package tables

import "github.com/maesh-dev/ichor/internal/codegen/model"

func offered() []model.OfferedKind {
	return []model.OfferedKind{
		{Kind: "HostnameConfig", Doc: "Sets the hostname, or how Talos derives one."},
		{Kind: "KubeNodeConfig", Doc: "Sets the Kubernetes node's addresses, labels, annotations and taints (Talos 1.14)."},
		{Kind: "KubePrismConfig", Doc: "Sets up the node-local load balancer for the Kubernetes API (Talos 1.14)."},
		{Kind: "NetworkDefaultActionConfig", Doc: "Sets what the ingress firewall does with packets that no rule matches."},
		{Kind: "NetworkRuleConfig", Doc: "Adds a rule to the ingress firewall."},
		{Kind: "OOMConfig", Doc: "Tunes which cgroups Talos kills when memory runs out, and when."},
		{Kind: "RegistryMirrorConfig", Doc: "Sets where images of a registry are pulled from."},
		{Kind: "ResolverConfig", Doc: "Sets DNS servers, search domains and the host's DNS cache."},
		{Kind: "SysctlConfig", Doc: "Sets kernel parameters (Talos 1.14)."},
		{Kind: "TimeSyncConfig", Doc: "Sets the time servers."},
		{Kind: "UnattendedInstallConfig", Doc: "Sets what is installed to which disk (Talos 1.14)."},
		{Kind: "UserVolumeConfig", Doc: "Adds a volume, mounted at /var/mnt/<name>."},
		{Kind: "VolumeConfig", Doc: "Sets size, disk and encryption of a system volume, such as EPHEMERAL or STATE."},
		{Kind: "v1alpha1", As: "Config", Doc: "The machine and cluster settings that have no kind of their own in the node's Talos version."},
	}
}

func denied() []model.DecidedKind {
	const bundle = "secret material and identity of the cluster; the secrets bundle owns it"

	return []model.DecidedKind{
		{Kind: "DiscoveryIdentityConfig", Reason: bundle},
		{Kind: "KubeAPIServerCAConfig", Reason: bundle},
		{Kind: "KubeAggregatorCAConfig", Reason: bundle},
		{Kind: "KubeClusterConfig", Reason: "name and endpoint of the cluster come from the Cluster object"},
		{Kind: "KubeEtcdEncryptionConfig", Reason: bundle},
		{Kind: "KubeServiceAccountConfig", Reason: bundle},
		{Kind: "SideroLinkConfig", Reason: "hands the machine to another manager, and its URL carries a join token"},
	}
}

// Why kinds wait.
const (
	simple       = "needs only rows in the tables that exist"
	unstructured = "its content is free-form in machinery and gets its upstream type first"
	credential   = "holds credentials of users, which become references to Secrets first"
	freeForm     = "its content can carry credentials and gets a reference beside it first"
)

func later() []model.DecidedKind {
	return []model.DecidedKind{
		{Kind: "BGPInstanceConfig", Reason: simple},
		{Kind: "BlackholeRouteConfig", Reason: simple},
		{Kind: "BondConfig", Reason: simple},
		{Kind: "BridgeConfig", Reason: simple},
		{Kind: "CRIBaseRuntimeSpecConfig", Reason: unstructured},
		{Kind: "CRICustomizationConfig", Reason: freeForm},
		{Kind: "ContainerConfig", Reason: freeForm},
		{Kind: "DHCPv4Config", Reason: simple},
		{Kind: "DHCPv6Config", Reason: simple},
		{Kind: "DiscoveryServiceConfig", Reason: simple},
		{Kind: "DummyLinkConfig", Reason: simple},
		{Kind: "EnvironmentConfig", Reason: freeForm},
		{Kind: "EtcFileConfig", Reason: freeForm},
		{Kind: "EthernetConfig", Reason: simple},
		{Kind: "EventSinkConfig", Reason: simple},
		{Kind: "ExistingVolumeConfig", Reason: simple},
		{Kind: "ExtensionServiceConfig", Reason: freeForm},
		{Kind: "ExternalVolumeConfig", Reason: simple},
		{Kind: "FilesystemScrubConfig", Reason: simple},
		{Kind: "FilesystemTrimConfig", Reason: simple},
		{Kind: "HCloudVIPConfig", Reason: credential},
		{Kind: "HTTPProbeConfig", Reason: simple},
		{Kind: "ImageCacheConfig", Reason: simple},
		{Kind: "ImageVerificationConfig", Reason: simple},
		{Kind: "KernelModuleConfig", Reason: simple},
		{Kind: "KmsgLogConfig", Reason: simple},
		{Kind: "KubeAPIServerConfig", Reason: freeForm},
		{Kind: "KubeAdmissionControlConfig", Reason: unstructured},
		{Kind: "KubeAuditPolicyConfig", Reason: unstructured},
		{Kind: "KubeAuthenticationConfig", Reason: unstructured},
		{Kind: "KubeAuthorizerConfig", Reason: unstructured},
		{Kind: "KubeControllerManagerConfig", Reason: freeForm},
		{Kind: "KubeCoreDNSConfig", Reason: simple},
		{Kind: "KubeCredentialProviderConfig", Reason: unstructured},
		{Kind: "KubeExternalManifestConfig", Reason: freeForm},
		{Kind: "KubeFlannelCNIConfig", Reason: unstructured},
		{Kind: "KubeInlineManifestConfig", Reason: freeForm},
		{Kind: "KubeNetworkConfig", Reason: simple},
		{Kind: "KubeProxyConfig", Reason: unstructured},
		{Kind: "KubeSchedulerConfig", Reason: unstructured},
		{Kind: "KubeSpanConfig", Reason: simple},
		{Kind: "KubeSpanEndpointsConfig", Reason: simple},
		{Kind: "KubeStaticPodConfig", Reason: "a whole pod is too large to type and comes by reference"},
		{Kind: "KubeTalosAPIAccessConfig", Reason: simple},
		{Kind: "KubeletConfig", Reason: unstructured},
		{Kind: "LVMLogicalVolumeConfig", Reason: simple},
		{Kind: "LVMVolumeGroupConfig", Reason: simple},
		{Kind: "Layer2VIPConfig", Reason: simple},
		{Kind: "LinkAliasConfig", Reason: simple},
		{Kind: "LinkConfig", Reason: simple},
		{Kind: "PCIDriverRebindConfig", Reason: simple},
		{Kind: "RAIDArrayConfig", Reason: simple},
		{Kind: "RawVolumeConfig", Reason: simple},
		{Kind: "RegistryAuthConfig", Reason: credential},
		{Kind: "RegistryTLSConfig", Reason: credential},
		{Kind: "RoutingRuleConfig", Reason: simple},
		{Kind: "SecurityProfileConfig", Reason: simple},
		{Kind: "StaticHostConfig", Reason: simple},
		{Kind: "SwapVolumeConfig", Reason: simple},
		{Kind: "SysfsConfig", Reason: simple},
		{Kind: "TCPProbeConfig", Reason: simple},
		{Kind: "TrustedRootsConfig", Reason: simple},
		{Kind: "UdevRulesConfig", Reason: simple},
		{Kind: "VLANConfig", Reason: simple},
		{Kind: "VRFConfig", Reason: simple},
		{Kind: "VethConfig", Reason: simple},
		{Kind: "WatchdogTimerConfig", Reason: simple},
		{Kind: "WireguardConfig", Reason: credential},
		{Kind: "ZswapConfig", Reason: simple},
	}
}
