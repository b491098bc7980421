// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"slices"

	"github.com/maesh-dev/ichor/internal/codegen/reference"
)

// Wants lead from what somebody wants to the kinds for it, in the order in which people ask.
func Wants() []reference.Want {
	return slices.Concat(networkWants(), storageWants(), kubernetesWants(), machineWants())
}

func networkWants() []reference.Want {
	const interfaces = "/machine/network/interfaces"

	return []reference.Want{
		{To: "set the hostname", Use: []string{"HostnameConfig"}, Legacy: []string{"/machine/network/hostname"}},
		{To: "give an interface a fixed address, a route or an MTU", Use: []string{"LinkConfig"}, Legacy: []string{interfaces}},
		{To: "use DHCP on an interface", Use: []string{"DHCPv4Config", "DHCPv6Config"}, Legacy: []string{interfaces + "/*/dhcp"}},
		{To: "bond interfaces", Use: []string{"BondConfig"}, Legacy: []string{interfaces + "/*/bond"}},
		{To: "add a VLAN", Use: []string{"VLANConfig"}, Legacy: []string{interfaces + "/*/vlans"}},
		{To: "build a bridge", Use: []string{"BridgeConfig"}, Legacy: []string{interfaces + "/*/bridge"}},
		{To: "name an interface by its hardware", Use: []string{"LinkAliasConfig"}},
		{To: "set DNS servers and search domains", Use: []string{"ResolverConfig"}, Legacy: []string{"/machine/network/nameservers"}},
		{To: "add entries to /etc/hosts", Use: []string{"StaticHostConfig"}, Legacy: []string{"/machine/network/extraHostEntries"}},
		{To: "share a virtual IP between control-plane machines", Use: []string{"Layer2VIPConfig", "HCloudVIPConfig"}, Legacy: []string{interfaces + "/*/vip"}},
		{To: "close ports with a firewall", Use: []string{"NetworkDefaultActionConfig", "NetworkRuleConfig"}},
		{To: "connect machines over WireGuard", Use: []string{"WireguardConfig"}, Legacy: []string{interfaces + "/*/wireguard"}},
		{To: "mesh all machines of the cluster (KubeSpan)", Use: []string{"KubeSpanConfig", "KubeSpanEndpointsConfig"}, Legacy: []string{"/machine/network/kubespan"}},
		{To: "announce routes by BGP", Use: []string{"BGPInstanceConfig"}},
		{To: "route by source, or keep networks apart", Use: []string{"RoutingRuleConfig", "VRFConfig"}},
		{To: "tune a network card", Use: []string{"EthernetConfig"}},
		{To: "wait for a service before the network counts as up", Use: []string{"TCPProbeConfig", "HTTPProbeConfig"}},
	}
}

func storageWants() []reference.Want {
	return []reference.Want{
		{To: "use a disk for data", Use: []string{"UserVolumeConfig"}, Legacy: []string{"/machine/disks"}},
		{To: "give Longhorn or another store a whole disk", Use: []string{"UserVolumeConfig", "RawVolumeConfig"}},
		{To: "mount a partition that has data already", Use: []string{"ExistingVolumeConfig"}},
		{To: "mount a share of the hypervisor", Use: []string{"ExternalVolumeConfig"}},
		{
			To: "bound or encrypt the system's own volumes", Use: []string{"VolumeConfig"},
			Legacy: []string{"/machine/systemDiskEncryption"},
		},
		{To: "have swap", Use: []string{"SwapVolumeConfig", "ZswapConfig"}},
		{To: "mirror disks", Use: []string{"RAIDArrayConfig"}},
		{To: "use LVM", Use: []string{"LVMVolumeGroupConfig", "LVMLogicalVolumeConfig"}},
		{To: "trim or scrub filesystems regularly", Use: []string{"FilesystemTrimConfig", "FilesystemScrubConfig"}},
	}
}

func kubernetesWants() []reference.Want {
	return []reference.Want{
		{To: "label, annotate or taint the node", Use: []string{"KubeNodeConfig"}, Legacy: []string{"/machine/nodeLabels", "/machine/nodeAnnotations", "/machine/nodeTaints"}},
		{To: "choose the node's address", Use: []string{"KubeNodeConfig"}, Legacy: []string{"/machine/kubelet/nodeIP"}},
		{To: "change the kubelet: pods per node, eviction, flags", Use: []string{"KubeletConfig"}, Legacy: []string{"/machine/kubelet/extraConfig", "/machine/kubelet/extraArgs"}},
		{To: "mount a host folder into the kubelet", Use: []string{"UserVolumeConfig"}, Legacy: []string{"/machine/kubelet/extraMounts"}},
		{To: "set flags of the API server", Use: []string{"KubeAPIServerConfig"}, Legacy: []string{"/cluster/apiServer/extraArgs"}},
		{To: "log in to Kubernetes by OIDC", Use: []string{"KubeAuthenticationConfig"}, Legacy: []string{"/cluster/apiServer/extraArgs"}},
		{To: "add names to the API server's certificate", Use: []string{"KubeAPIServerConfig"}, Legacy: []string{"/cluster/apiServer/certSANs"}},
		{To: "set what is audited", Use: []string{"KubeAuditPolicyConfig"}, Legacy: []string{"/cluster/apiServer/auditPolicy"}},
		{To: "exempt a namespace from pod security", Use: []string{"KubeAdmissionControlConfig"}, Legacy: []string{"/cluster/apiServer/admissionControl"}},
		{To: "set flags of the controller manager or the scheduler", Use: []string{"KubeControllerManagerConfig", "KubeSchedulerConfig"}, Legacy: []string{"/cluster/controllerManager/extraArgs", "/cluster/scheduler/extraArgs"}},
		{To: "replace kube-proxy (Cilium)", Use: []string{"KubeProxyConfig"}, Legacy: []string{"/cluster/proxy/disabled"}},
		{To: "replace CoreDNS", Use: []string{"KubeCoreDNSConfig"}, Legacy: []string{"/cluster/coreDNS/disabled"}},
		{To: "tune Flannel", Use: []string{"KubeFlannelCNIConfig"}, Legacy: []string{"/cluster/network/cni/flannel"}},
		{To: "apply manifests when the cluster starts", Use: []string{"KubeInlineManifestConfig", "KubeExternalManifestConfig"}, Legacy: []string{"/cluster/inlineManifests", "/cluster/extraManifests"}},
		{To: "run a static pod", Use: []string{"KubeStaticPodConfig"}, Legacy: []string{"/machine/pods"}},
		{To: "let pods call the Talos API", Use: []string{"KubeTalosAPIAccessConfig"}, Legacy: []string{"/machine/features/kubernetesTalosAPIAccess"}},
		{To: "reach the API server without a load balancer", Use: []string{"KubePrismConfig"}, Legacy: []string{"/machine/features/kubePrism"}},
		{To: "run pods on control-plane machines", Use: []string{"KubeNodeConfig"}, Legacy: []string{"/cluster/allowSchedulingOnControlPlanes"}},
	}
}

func machineWants() []reference.Want {
	return []reference.Want{
		{To: "pull images through a mirror", Use: []string{"RegistryMirrorConfig"}, Legacy: []string{"/machine/registries/mirrors"}},
		{To: "log in to a registry, or trust its certificate", Use: []string{"RegistryAuthConfig", "RegistryTLSConfig"}, Legacy: []string{"/machine/registries/config"}},
		{To: "set kernel parameters", Use: []string{"SysctlConfig", "SysfsConfig"}, Legacy: []string{"/machine/sysctls", "/machine/sysfs"}},
		{To: "load kernel modules", Use: []string{"KernelModuleConfig"}, Legacy: []string{"/machine/kernel/modules"}},
		{To: "set time servers", Use: []string{"TimeSyncConfig"}, Legacy: []string{"/machine/time"}},
		{To: "trust a certificate authority", Use: []string{"TrustedRootsConfig"}},
		{To: "use a proxy", Use: []string{"EnvironmentConfig"}, Legacy: []string{"/machine/env"}},
		{To: "write a file", Use: []string{"EtcFileConfig"}, Legacy: []string{"/machine/files"}},
		{To: "configure a system extension", Use: []string{"ExtensionServiceConfig"}},
		{To: "run a container without Kubernetes", Use: []string{"ContainerConfig"}},
		{To: "choose the disk for the installation", Use: []string{"UnattendedInstallConfig"}, Legacy: []string{"/machine/install"}},
		{To: "change containerd's settings", Use: []string{"CRICustomizationConfig", "CRIBaseRuntimeSpecConfig"}, Legacy: []string{"/machine/baseRuntimeSpecOverrides"}},
		{To: "hand a PCI device, such as a GPU, to another driver", Use: []string{"PCIDriverRebindConfig"}},
		{To: "write udev rules", Use: []string{"UdevRulesConfig"}, Legacy: []string{"/machine/udev"}},
		{To: "accept signed images only", Use: []string{"ImageVerificationConfig"}},
		{To: "send logs and events elsewhere", Use: []string{"KmsgLogConfig", "EventSinkConfig"}, Legacy: []string{"/machine/logging"}},
		{To: "reboot a machine that hangs", Use: []string{"WatchdogTimerConfig"}},
	}
}
