// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"slices"

	"github.com/maesh-dev/ichor/internal/codegen/model"
)

func offered() []model.OfferedKind {
	return slices.Concat(networkKinds(), storageKinds(), kubernetesKinds(), machineKinds())
}

// networkKinds connect the machine.
func networkKinds() []model.OfferedKind {
	return []model.OfferedKind{
		{Kind: "BGPInstanceConfig", Doc: "Runs a BGP speaker (Talos 1.14)."},
		{Kind: "BlackholeRouteConfig", Doc: "Adds a route that drops packets (Talos 1.13)."},
		{Kind: "BondConfig", Doc: "Bonds links into one."},
		{Kind: "BridgeConfig", Doc: "Bridges links."},
		{Kind: "DHCPv4Config", Member: "dhcpv4Config", Doc: "Asks for IPv4 addresses by DHCP on a link."},
		{Kind: "DHCPv6Config", Member: "dhcpv6Config", Doc: "Asks for IPv6 addresses by DHCP on a link."},
		{Kind: "DummyLinkConfig", Doc: "Adds a dummy link."},
		{Kind: "EthernetConfig", Doc: "Tunes a network card: offloads, rings, channels, wake on LAN."},
		{Kind: "HCloudVIPConfig", Member: "hcloudVIPConfig", Doc: "Shares a virtual IP address of Hetzner Cloud between control-plane machines."},
		{Kind: "HTTPProbeConfig", Doc: "Has the network count as up only while a URL answers (Talos 1.14)."},
		{Kind: "HostnameConfig", Doc: "Sets the hostname, or how Talos derives one."},
		{Kind: "KubeSpanConfig", Doc: "Sets up KubeSpan, the WireGuard mesh between machines (Talos 1.13)."},
		{Kind: "KubeSpanEndpointsConfig", Doc: "Adds endpoints by which this machine can be reached over KubeSpan."},
		{Kind: "Layer2VIPConfig", Doc: "Shares a virtual IP address between the control-plane machines of one network."},
		{Kind: "LinkAliasConfig", Doc: "Gives a link that a selector finds a name of its own."},
		{Kind: "LinkConfig", Doc: "Sets addresses, routes and MTU of a link."},
		{Kind: "NetworkDefaultActionConfig", Doc: "Sets what the ingress firewall does with packets that no rule matches."},
		{Kind: "NetworkRuleConfig", Doc: "Adds a rule to the ingress firewall."},
		{Kind: "ResolverConfig", Doc: "Sets DNS servers, search domains and the host's DNS cache."},
		{Kind: "RoutingRuleConfig", Doc: "Adds a rule that chooses a routing table (Talos 1.13)."},
		{Kind: "StaticHostConfig", Doc: "Adds an entry to /etc/hosts."},
		{Kind: "TCPProbeConfig", Doc: "Has the network count as up only while a TCP endpoint answers (Talos 1.13)."},
		{Kind: "TimeSyncConfig", Doc: "Sets the time servers."},
		{Kind: "VLANConfig", Doc: "Adds a VLAN to a link."},
		{Kind: "VRFConfig", Doc: "Adds a virtual routing and forwarding domain (Talos 1.13)."},
		{Kind: "VethConfig", Doc: "Adds a pair of virtual links (Talos 1.14)."},
		{Kind: "WireguardConfig", Doc: "Adds a WireGuard link."},
	}
}

// storageKinds lay out its disks and memory.
func storageKinds() []model.OfferedKind {
	return []model.OfferedKind{
		{Kind: "ExistingVolumeConfig", Doc: "Mounts a partition that exists already, at /var/mnt/<name>."},
		{Kind: "ExternalVolumeConfig", Doc: "Mounts a volume from outside the machine, at /var/mnt/<name> (Talos 1.13)."},
		{Kind: "FilesystemScrubConfig", Doc: "Schedules checks of filesystems (Talos 1.14)."},
		{Kind: "FilesystemTrimConfig", Doc: "Schedules discarding of unused blocks (Talos 1.14)."},
		{Kind: "LVMLogicalVolumeConfig", Doc: "Adds a logical volume to an LVM volume group (Talos 1.14)."},
		{Kind: "LVMVolumeGroupConfig", Doc: "Makes an LVM volume group of disks (Talos 1.14)."},
		{Kind: "RAIDArrayConfig", Doc: "Makes a RAID array of disks (Talos 1.14)."},
		{Kind: "RawVolumeConfig", Doc: "Adds a volume without a filesystem."},
		{Kind: "SwapVolumeConfig", Doc: "Adds a volume for swap."},
		{Kind: "UserVolumeConfig", Doc: "Adds a volume, mounted at /var/mnt/<name>."},
		{Kind: "VolumeConfig", Doc: "Sets size, disk and encryption of a system volume, such as EPHEMERAL or STATE."},
		{Kind: "ZswapConfig", Doc: "Sets up compressed swap in memory."},
	}
}

// kubernetesKinds set up what Talos runs of Kubernetes.
func kubernetesKinds() []model.OfferedKind {
	return []model.OfferedKind{
		{Kind: "KubeAPIServerConfig", Doc: "Sets up the Kubernetes API server (Talos 1.14)."},
		{Kind: "KubeAdmissionControlConfig", Doc: "Configures an admission plugin of the Kubernetes API server (Talos 1.14)."},
		{Kind: "KubeAuditPolicyConfig", Doc: "Sets what the Kubernetes API server writes to its audit log (Talos 1.14)."},
		{Kind: "KubeAuthenticationConfig", Doc: "Sets whom the Kubernetes API server takes tokens from, such as OIDC issuers (Talos 1.14)."},
		{Kind: "KubeAuthorizerConfig", Doc: "Adds an authorizer to the Kubernetes API server (Talos 1.14)."},
		{Kind: "KubeControllerManagerConfig", Doc: "Sets up the Kubernetes controller manager (Talos 1.14)."},
		{Kind: "KubeCoreDNSConfig", Doc: "Sets up CoreDNS (Talos 1.14)."},
		{Kind: "KubeCredentialProviderConfig", Doc: "Sets where the kubelet gets credentials for images from (Talos 1.14)."},
		{Kind: "KubeExternalManifestConfig", Doc: "Applies Kubernetes manifests from a URL (Talos 1.14)."},
		{Kind: "KubeFlannelCNIConfig", Doc: "Sets up the pod network flannel (Talos 1.14)."},
		{Kind: "KubeInlineManifestConfig", Doc: "Applies Kubernetes manifests that stand here (Talos 1.14)."},
		{Kind: "KubeNetworkConfig", Doc: "Sets the cluster's DNS domain and its pod and service networks (Talos 1.14)."},
		{Kind: "KubeNodeConfig", Doc: "Sets the Kubernetes node's addresses, labels, annotations and taints (Talos 1.14)."},
		{Kind: "KubePrismConfig", Doc: "Sets up the node-local load balancer for the Kubernetes API (Talos 1.14)."},
		{Kind: "KubeProxyConfig", Doc: "Sets up kube-proxy (Talos 1.14)."},
		{Kind: "KubeSchedulerConfig", Doc: "Sets up the Kubernetes scheduler (Talos 1.14)."},
		{Kind: "KubeStaticPodConfig", Doc: "Runs a pod without the API server (Talos 1.14)."},
		{Kind: "KubeTalosAPIAccessConfig", Doc: "Gives pods in the cluster access to the Talos API (Talos 1.14)."},
		{Kind: "KubeletConfig", Doc: "Sets up the kubelet (Talos 1.14)."},
	}
}

// machineKinds are all others.
func machineKinds() []model.OfferedKind {
	return []model.OfferedKind{
		{Kind: "CRIBaseRuntimeSpecConfig", Doc: "Overrides the OCI runtime specification that containers start with (Talos 1.14)."},
		{Kind: "CRICustomizationConfig", Doc: "Adds to containerd's configuration (Talos 1.14)."},
		{Kind: "ContainerConfig", Doc: "Runs a container next to Talos' own services (Talos 1.14)."},
		{Kind: "DiscoveryServiceConfig", Doc: "Sets the discovery service that cluster members find each other by (Talos 1.14)."},
		{Kind: "EnvironmentConfig", Doc: "Sets environment variables of Talos' services, such as proxies (Talos 1.13)."},
		{Kind: "EtcFileConfig", Doc: "Writes a file in /etc (Talos 1.14)."},
		{Kind: "EventSinkConfig", Doc: "Sends Talos' events to an endpoint."},
		{Kind: "ExtensionServiceConfig", Doc: "Configures the service of a system extension."},
		{Kind: "ImageCacheConfig", Doc: "Turns the image cache on the machine's disk on (Talos 1.14)."},
		{Kind: "ImageVerificationConfig", Doc: "Sets whose signatures images must have (Talos 1.13)."},
		{Kind: "KernelModuleConfig", Doc: "Loads a kernel module (Talos 1.14)."},
		{Kind: "KmsgLogConfig", Doc: "Sends the kernel's log to an endpoint."},
		{Kind: "OOMConfig", Doc: "Tunes which cgroups Talos kills when memory runs out, and when."},
		{Kind: "PCIDriverRebindConfig", Doc: "Binds a PCI device to another driver."},
		{Kind: "RegistryAuthConfig", Doc: "Sets the credentials for a registry."},
		{Kind: "RegistryMirrorConfig", Doc: "Sets where images of a registry are pulled from."},
		{Kind: "RegistryTLSConfig", Doc: "Sets authorities and client certificate for a registry."},
		{Kind: "SecurityProfileConfig", Doc: "Sets how workloads are isolated from the machine (Talos 1.14)."},
		{Kind: "SysctlConfig", Doc: "Sets kernel parameters (Talos 1.14)."},
		{Kind: "SysfsConfig", Doc: "Sets values in /sys (Talos 1.14)."},
		{Kind: "TrustedRootsConfig", Doc: "Adds certificate authorities that the machine trusts."},
		{Kind: "UdevRulesConfig", Doc: "Adds udev rules (Talos 1.14)."},
		{Kind: "UnattendedInstallConfig", Doc: "Sets what is installed to which disk (Talos 1.14)."},
		{Kind: "WatchdogTimerConfig", Doc: "Sets up the hardware watchdog."},
		{Kind: "v1alpha1", As: "Config", Doc: "The machine and cluster settings that have no kind of their own in the node's Talos version."},
	}
}

func denied() []model.DecidedKind {
	const bundle = "secret material and identity of the cluster; the secrets bundle owns it"

	const (
		adopt = "nothing, or a bundle of your own as the cluster's Secret"
		roots = "TalosClusterConfig.spec.acceptedCAsSecretRef for further authorities"
	)

	return []model.DecidedKind{
		{Kind: "DiscoveryIdentityConfig", Owner: model.Bundle, Reason: bundle, Instead: adopt},
		{Kind: "KubeAPIServerCAConfig", Owner: model.Bundle, Reason: bundle, Instead: roots},
		{Kind: "KubeAggregatorCAConfig", Owner: model.Bundle, Reason: bundle, Instead: roots},
		{
			Kind: "KubeClusterConfig", Owner: model.Cluster, Reason: "name and endpoint of the cluster come from the Cluster object",
			Instead: "name and spec.controlPlaneEndpoint of the Cluster",
		},
		{Kind: "KubeEtcdEncryptionConfig", Owner: model.Bundle, Reason: bundle, Instead: adopt},
		{Kind: "KubeServiceAccountConfig", Owner: model.Bundle, Reason: bundle, Instead: adopt},
		{
			Kind: "SideroLinkConfig", Owner: model.Another, Reason: "hands the machine to another manager, and its URL carries a join token",
			Instead: "EventSinkConfig and KmsgLogConfig to send events and logs elsewhere",
		},
	}
}
