// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"slices"
	"strings"

	"github.com/maesh-dev/ichor/internal/codegen/model"
)

// notes are the texts of fields that do not explain themselves. A text of a nested type is shown, and takes room in the CRD, wherever
// the type is used, so the texts of inReferenceOnly are left out of the schema: kubectl explain does not show them.
func notes() []model.Note {
	var rows []model.Note

	only := inReferenceOnly()

	for _, texts := range []map[string]string{
		volumeNotes(), encryptionNotes(), linkNotes(), bondNotes(), tunnelNotes(), hostNotes(), firewallNotes(), kubernetesNotes(), systemNotes(), legacyNotes(),
	} {
		for field, text := range texts {
			rows = append(rows, model.Note{Go: "config/types/" + field, Text: text, ReferenceOnly: slices.Contains(only, field)})
		}
	}

	// A map's order changes from run to run, and errors are to come in the same.
	slices.SortFunc(rows, func(a, b model.Note) int { return strings.Compare(a.Go, b.Go) })

	return rows
}

// inReferenceOnly are the fields whose texts the schema has no room for: its bound is that of what client-side apply can annotate.
// When a newer Talos needs room for its kinds, the least used texts move here.
func inReferenceOnly() []string {
	return []string{
		"network.ResolverConfigV1Alpha1.ResolverHostDNS",
		"network.ResolverConfigV1Alpha1.ResolverNameservers",
		"network.WireguardPeer.WireguardPublicKey",
		"k8s.KubeAPIServerConfigV1Alpha1.PodAPIPort",
		"k8s.KubeAPIServerConfigV1Alpha1.PodCertExtraSANs",
		"k8s.KubeAPIServerConfigV1Alpha1.PodImage",
		"k8s.KubeNetworkConfigV1Alpha1.NetworkDNSDomain",
		"k8s.KubeNetworkConfigV1Alpha1.NetworkPodSubnets",
		"k8s.KubeNetworkConfigV1Alpha1.NetworkServiceSubnets",
		"k8s.KubeTalosAPIAccessConfigV1Alpha1.AccessAllowedRoles",
		"block.EncryptionKeyKMS.KMSEndpoint",
		"block.EncryptionKeyTPM.TPMCheckSecurebootStatusOnEnroll",
		"block.EncryptionKeyTPMOptions.PCRs",
		"block.EncryptionSpec.EncryptionBlockSize",
		"block.EncryptionSpec.EncryptionCipher",
		"block.EncryptionSpec.EncryptionKeySize",
		"block.EncryptionSpec.EncryptionPerfOptions",
		"network.AddressConfig.AddressPriority",
		"network.RouteConfig.RouteSource",
		"network.BridgeConfigV1Alpha1.BridgeLinks",
		"network.CommonLinkConfig.LinkUp",
		"network.HostDNSConfig.HostDNSForwardKubeDNSToHost",
		"network.HostDNSConfig.HostDNSResolveMemberNames",
		"network.NTPConfig.Servers",
		"network.NTPConfig.UseNTS",
		"network.NameserverConfig.TLSServerName",
		"network.PTPConfig.Devices",
		"network.SearchDomainsConfig.SearchDisableDefault",
		"network.TimeSyncConfigV1Alpha1.TimeBootTimeout",
		"network.TimeSyncConfigV1Alpha1.TimeEnabled",
		"network.WireguardConfigV1Alpha1.MetaName",
		"network.WireguardConfigV1Alpha1.WireguardFirewallMark",
		"network.WireguardConfigV1Alpha1.WireguardListenPort",
		"network.WireguardPeer.WireguardEndpoint",
		"network.WireguardPeer.WireguardPersistentKeepaliveInterval",
		"runtime.SysfsConfigV1Alpha1.Params",
		"network.BondConfigV1Alpha1.BondADSelect",
		"network.BondConfigV1Alpha1.BondARPIPTargets",
		"network.BondConfigV1Alpha1.BondARPInterval",
		"network.BondConfigV1Alpha1.BondDownDelay",
		"network.BondConfigV1Alpha1.BondMinLinks",
		"network.BondConfigV1Alpha1.BondNumPeerNotif",
		"network.BondConfigV1Alpha1.BondPrimaryReselect",
		"network.BondConfigV1Alpha1.BondUpDelay",
		"network.BondConfigV1Alpha1.BondFailOverMAC",
		"v1alpha1.ClusterConfig.APIServerConfig",
		"v1alpha1.ClusterConfig.AllowSchedulingOnControlPlanes",
		"v1alpha1.ClusterConfig.ClusterInlineManifests",
		"v1alpha1.ClusterConfig.ClusterNetwork",
		"v1alpha1.ClusterConfig.ControllerManagerConfig",
		"v1alpha1.ClusterConfig.CoreDNSConfig",
		"v1alpha1.ClusterConfig.ExtraManifests",
		"v1alpha1.ClusterConfig.ProxyConfig",
		"v1alpha1.ClusterConfig.SchedulerConfig",
		"v1alpha1.MachineConfig.MachineCertSANs",
		"v1alpha1.MachineConfig.MachineDisks",
		"v1alpha1.MachineConfig.MachineEnv",
		"v1alpha1.MachineConfig.MachineFeatures",
		"v1alpha1.MachineConfig.MachineFiles",
		"v1alpha1.MachineConfig.MachineInstall",
		"v1alpha1.MachineConfig.MachineKernel",
		"v1alpha1.MachineConfig.MachineKubelet",
		"v1alpha1.MachineConfig.MachineNetwork",
		"v1alpha1.MachineConfig.MachineNodeAnnotations",
		"v1alpha1.MachineConfig.MachineNodeLabels",
		"v1alpha1.MachineConfig.MachineNodeTaints",
		"v1alpha1.MachineConfig.MachineRegistries",
		"v1alpha1.MachineConfig.MachineSysctls",
		"v1alpha1.MachineConfig.MachineSysfs",
		"v1alpha1.MachineConfig.MachineTime",
	}
}

func volumeNotes() map[string]string {
	const (
		user   = "block.UserVolumeConfigV1Alpha1."
		system = "block.VolumeConfigV1Alpha1."
		raw    = "block.RawVolumeConfigV1Alpha1."
		where  = "Which one disk the volume is made on, and how large."
		trim   = "Overrides FilesystemTrimConfig for this volume."
		scrub  = "Overrides FilesystemScrubConfig for this volume."
	)

	return map[string]string{
		user + "MetaName":         "Name of the volume: it is mounted at /var/mnt/<name>.",
		user + "VolumeType":       "partition (default), disk (a whole one) or directory (on EPHEMERAL).",
		user + "ProvisioningSpec": where + " Not for a directory.",
		user + "EncryptionSpec":   "Encrypts the volume. A volume that exists already stays as it is.",
		user + "TrimSpec":         trim,
		user + "ScrubSpec":        scrub,

		system + "MetaName":         "EPHEMERAL (/var), STATE, IMAGECACHE; from Talos 1.14 on also ETCD, CRI, KUBELET, LOG.",
		system + "ProvisioningSpec": where + " Not for STATE.",
		system + "EncryptionSpec":   "Encrypts the volume when it is made.",
		system + "TrimSpec":         trim,
		system + "ScrubSpec":        scrub,

		raw + "MetaName":         "Name of the volume: a partition labelled r-<name>, without a filesystem.",
		raw + "ProvisioningSpec": where,

		"block.DiskSelector.Match":                       "CEL over disk and system_disk, such as disk.transport == \"nvme\" && !system_disk.",
		"block.ProvisioningSpec.ProvisioningGrow":        "Whether an existing volume grows up to maxSize at boot.",
		"block.ProvisioningSpec.ProvisioningMinSize":     "A disk with less room is not used. Such as 10GiB.",
		"block.ProvisioningSpec.DiskSelectorSpec":        "By disk.dev_path, serial, model, wwid, size or transport; a match with room is taken.",
		"block.ProvisioningSpec.ProvisioningMaxSize":     "Such as 50GiB or 80%; left out: all there is. Negative: what is left free (Talos 1.13).",
		"block.FilesystemSpec.FilesystemType":            "xfs is the default.",
		"block.XFSSpec.MinAllocationGroupSizeConfig":     "Smallest allocation group that mkfs.xfs may make.",
		"block.FilesystemSpec.ProjectQuotaSupportConfig": "Turns project quotas on, for limits of local ephemeral storage.",
		"block.UserMountSpec.MountSecure":                "Mounts with nosuid and nodev. On by default.",
		"block.UserMountSpec.MountDisableAccessTime":     "Mounts with noatime.",
		"block.MountSpec.MountDisableAccessTime":         "Mounts with noatime.",
		"block.MountSpec.MountSecure":                    "Mounts with nosuid and nodev. On by default.",
		"block.ExistingVolumeConfigV1Alpha1.MetaName":    "Name of the mount: /var/mnt/<name>.",
		"block.VolumeSelector.Match":                     "CEL over volume and disk, such as volume.partition_label == \"data\".",
		"block.SwapVolumeConfigV1Alpha1.MetaName":        "Name of the volume: a partition labelled s-<name>.",
	}
}

func encryptionNotes() map[string]string {
	const (
		spec = "block.EncryptionSpec."
		key  = "block.EncryptionKey."
	)

	return map[string]string{
		spec + "EncryptionProvider":      "Required: luks2 is the only one.",
		spec + "EncryptionKeys":          "Required: one or more ways to unlock the volume, each in a LUKS slot of its own.",
		spec + "EncryptionCipher":        "aes-xts-plain64 (default), or xchacha12 or xchacha20,aes-adiantum-plain64.",
		spec + "EncryptionKeySize":       "Bits: 512 or 256 with aes-xts-plain64, 256 with the others.",
		spec + "EncryptionBlockSize":     "Bytes of a sector: 512, 1024, 2048 or 4096.",
		spec + "EncryptionPerfOptions":   "Flags of cryptsetup, such as no_read_workqueue.",
		spec + "EncryptionAllowDiscards": "Lets TRIM through to the disk.",
		key + "KeySlot":                  "LUKS slot: 0, 1 and so on, each once. Never reuse one for another key; take a free one.",
		key + "KeyNodeID":                "Derived from the machine's UUID: no secret, only against lost disks.",
		key + "KeyKMS":                   "Sealed by a key server on the network.",
		key + "KeyTPM":                   "Sealed by the machine's TPM.",

		"block.EncryptionKeyKMS.KMSEndpoint":                      "Address of the key server, such as https://kms.example.com:4050.",
		"block.EncryptionKeyTPM.TPMCheckSecurebootStatusOnEnroll": "Makes no key while secure boot is off.",
		"block.EncryptionKeyTPMOptions.PCRs":                      "Registers of the TPM that must not change: by default 7, the state of secure boot.",
		key + "KeyLockToSTATE":                                    "Binds the key to the STATE volume of this installation.",
	}
}

func linkNotes() map[string]string {
	const (
		common  = "network.CommonLinkConfig."
		address = "network.AddressConfig."
		route   = "network.RouteConfig."
	)

	return map[string]string{
		common + "LinkUp":                             "Whether the link is brought up.",
		address + "AddressAddress":                    "With its prefix length, such as 192.0.2.11/24.",
		address + "AddressPriority":                   "Metric of the address' own route.",
		route + "RouteDestination":                    "Such as 10.0.0.0/8. Left out: the default route.",
		route + "RouteGateway":                        "Left out: the destination is on the link.",
		route + "RouteMetric":                         "The lowest wins.",
		route + "RouteSource":                         "Source address of what is sent.",
		"network.LinkConfigV1Alpha1.MetaName":         "Name of the interface, such as enp1s0, or an alias of LinkAliasConfig.",
		"network.VLANConfigV1Alpha1.MetaName":         "Name of the new link.",
		"network.VLANConfigV1Alpha1.ParentLinkConfig": "Name of the link that carries the VLAN.",
		"network.VLANConfigV1Alpha1.VLANIDConfig":     "The tag, 1 to 4094.",
		"network.VLANConfigV1Alpha1.VLANModeConfig":   "802.1q is the default; 802.1ad for the outer tag of QinQ.",
		"network.LinkAliasConfigV1Alpha1.MetaName":    "The name by which other documents call the link.",
		"network.LinkSelector.Match":                  "CEL over link, such as mac(link.permanent_addr) == \"00:1a:2b:3c:4d:5e\".",
		"network.BridgeConfigV1Alpha1.BridgeLinks":    "Names of the links in the bridge.",
		"network.Layer2VIPConfigV1Alpha1.MetaName":    "The shared IP address itself, such as 192.0.2.10.",
		"network.Layer2VIPConfigV1Alpha1.LinkName":    "Name of the link in the network of the address.",
	}
}

func bondNotes() map[string]string {
	const bond = "network.BondConfigV1Alpha1."

	return map[string]string{
		bond + "MetaName":            "Name of the new link, such as bond0.",
		bond + "BondLinks":           "Names of the links that are bonded; at least one.",
		bond + "BondMode":            "802.3ad is LACP and needs the switch; active-backup does not. Always set.",
		bond + "BondXmitHashPolicy":  "What spreads traffic over the links, with balance-xor, 802.3ad and balance-tlb.",
		bond + "BondLACPRate":        "How often the partner is to send: slow (30 s) or fast (1 s). 802.3ad only.",
		bond + "BondMIIMon":          "Checks the links every so many milliseconds; 0 never. 100 is usual.",
		bond + "BondUpDelay":         "Milliseconds to wait before a link that is back is used.",
		bond + "BondDownDelay":       "Milliseconds to wait before a link that is down is left.",
		bond + "BondARPInterval":     "Checks the links by ARP every so many milliseconds. Not together with miimon.",
		bond + "BondARPIPTargets":    "Addresses that answer those ARP requests.",
		bond + "BondMinLinks":        "Links that must be up for the bond to be up.",
		bond + "BondPrimaryReselect": "When the primary link is taken again.",
		bond + "BondFailOverMAC":     "Which hardware address an active-backup bond shows. By name since Talos 1.13.",
		bond + "BondADSelect":        "How 802.3ad chooses among several aggregators.",
		bond + "BondNumPeerNotif":    "Gratuitous ARPs that are sent after a failover.",
	}
}

func tunnelNotes() map[string]string {
	const peer = "network.WireguardPeer."

	return map[string]string{
		"network.WireguardConfigV1Alpha1.MetaName":              "Name of the new link, such as wg0.",
		"network.WireguardConfigV1Alpha1.WireguardListenPort":   "UDP port; left out: any free one, for a machine that only calls.",
		"network.WireguardConfigV1Alpha1.WireguardFirewallMark": "Mark of the packets that WireGuard sends.",
		peer + "WireguardPublicKey":                             "The peer's key in base64.",
		peer + "WireguardEndpoint":                              "Where the peer is called, IP:port. Left out: it calls.",
		peer + "WireguardAllowedIPs":                            "Networks behind the peer: what it may send, and what is sent to it.",
		peer + "WireguardPersistentKeepaliveInterval":           "Keeps a NAT open, such as 25s.",
	}
}

func hostNotes() map[string]string {
	const resolver = "network.ResolverConfigV1Alpha1."

	return map[string]string{
		"network.HostnameConfigV1Alpha1.ConfigAuto":         "Quote \"off\" in YAML: unquoted it is a boolean. Not together with hostname.",
		"network.HostnameConfigV1Alpha1.ConfigHostname":     "A fixed name, with or without domain. For one machine only: use layer Machine.",
		resolver + "ResolverNameservers":                    "DNS servers in the order in which they are asked.",
		resolver + "ResolverHostDNS":                        "The DNS cache on the machine.",
		"network.NameserverConfig.Protocol":                 "Do53 is plain DNS, DoT over TLS, DoH over HTTPS.",
		"network.NameserverConfig.TLSServerName":            "Name in the server's certificate, for DoT and DoH.",
		"network.SearchDomainsConfig.SearchDisableDefault":  "Leaves out the domain of the machine's own name.",
		"network.HostDNSConfig.HostDNSForwardKubeDNSToHost": "CoreDNS asks the machine's cache, not the servers.",
		"network.HostDNSConfig.HostDNSResolveMemberNames":   "Resolves the names of the cluster's machines.",
		"network.TimeSyncConfigV1Alpha1.TimeEnabled":        "false: the machine's clock is left alone.",
		"network.TimeSyncConfigV1Alpha1.TimeBootTimeout":    "How long the boot waits for the time; 0 waits for ever.",
		"network.NTPConfig.Servers":                         "Host names or addresses.",
		"network.NTPConfig.UseNTS":                          "Asks the servers over NTS, which proves who they are.",
		"network.PTPConfig.Devices":                         "Clock devices, such as /dev/ptp0. Not together with ntp.",
	}
}

func firewallNotes() map[string]string {
	return map[string]string{
		"network.DefaultActionConfigV1Alpha1.Ingress": "block needs rules for all that must get in: Talos API 50000, kubelet, etcd.",
		"network.RuleConfigV1Alpha1.MetaName":         "A name of your choice, which identifies the rule.",
		"network.RuleConfigV1Alpha1.Ingress":          "Who is let in.",
		"network.RulePortSelector.Ports":              "Numbers, or ranges such as 30000-32767.",
		"network.IngressRule.Subnet":                  "A network that is let in.",
		"network.IngressRule.Except":                  "A part of it that is not.",
	}
}

func kubernetesNotes() map[string]string {
	const (
		kubelet   = "k8s.KubeletConfigV1Alpha1."
		node      = "k8s.KubeNodeConfigV1Alpha1."
		apiServer = "k8s.KubeAPIServerConfigV1Alpha1."
		image     = "Follows from the Machine's version; leave it out."
		flags     = "Flags by name, without the dashes. Talos refuses those that it sets itself."
	)

	return map[string]string{
		kubelet + "KubeletImage":                               image,
		kubelet + "KubeletArgs":                                flags,
		kubelet + "KubeletClusterDNS":                          "Addresses of the cluster's DNS, if it is not the usual one.",
		kubelet + "KubeletDefaultRuntimeSeccompProfileEnabled": "Gives pods without a seccomp profile the runtime's.",

		node + "LabelsConfig":                 "Labels of the Node.",
		node + "AnnotationsConfig":            "Annotations of the Node.",
		node + "TaintsConfig":                 "By key: \"NoSchedule\", or \"value:NoSchedule\" with a value.",
		node + "NodeIPConfig":                 "Which of the machine's addresses the Node has.",
		node + "RegisterWithFQDNConfig":       "Names the Node by host and domain.",
		node + "SkipNodeRegistrationConfig":   "Runs static pods only: the machine does not become a Node.",
		"k8s.NodeIPConfig.NodeIPValidSubnets": "Networks of the address; with ! before it, one that it is not in.",

		apiServer + "PodImage":         image,
		apiServer + "PodArgs":          flags,
		apiServer + "PodAPIPort":       "Port of the API server on the machine; 6443 by default.",
		apiServer + "PodCertExtraSANs": "More host names and addresses in the API server's certificate.",

		"k8s.KubeProxyConfigV1Alpha1.ProxyEnabled":                "false for a CNI that does it itself, such as Cilium.",
		"k8s.KubeProxyConfigV1Alpha1.ProxyImage":                  image,
		"k8s.KubeProxyConfigV1Alpha1.ProxyExtraArgs":              flags,
		"k8s.KubeProxyConfigV1Alpha1.ProxyMode":                   "nftables, iptables or ipvs.",
		"k8s.KubeNetworkConfigV1Alpha1.NetworkDNSDomain":          "cluster.local by default.",
		"k8s.KubeNetworkConfigV1Alpha1.NetworkPodSubnets":         "Networks of pods.",
		"k8s.KubeNetworkConfigV1Alpha1.NetworkServiceSubnets":     "Networks of services.",
		"k8s.KubePrismConfigV1Alpha1.PortConfig":                  "Port on localhost where any API server answers; 7445 is usual.",
		"k8s.KubeTalosAPIAccessConfigV1Alpha1.AccessAllowedRoles": "Talos roles that pods may ask for, such as os:reader.",
	}
}

func systemNotes() map[string]string {
	const (
		mirror = "cri.RegistryMirrorConfigV1Alpha1."
		module = "runtime.KernelModuleConfigV1Alpha1."
	)

	return map[string]string{
		mirror + "MetaName":                         "Host of the registry, such as docker.io; * for all others.",
		"cri.RegistryAuthConfigV1Alpha1.MetaName":   "Host that is contacted: a mirror's own, if there is one.",
		"cri.RegistryTLSConfigV1Alpha1.MetaName":    "Host that is contacted: a mirror's own, if there is one.",
		mirror + "RegistryEndpoints":                "Mirrors in the order in which they are tried.",
		mirror + "RegistrySkipFallback":             "Never asks the registry itself.",
		"cri.RegistryEndpoint.EndpointOverridePath": "The URL has the whole path, /v2 included; nothing is added.",
		module + "MetaName":                         "Name of the module, such as nvme_tcp.",
		module + "ModuleParameters":                 "Parameters of the module, such as max=4.",
		"runtime.SysctlConfigV1Alpha1.Params":       "By name, such as vm.nr_hugepages. Numbers are quoted.",
		"runtime.SysfsConfigV1Alpha1.Params":        "By path below /sys, with dots for slashes.",
		"runtime.InstallerSpec.Image":               "Follows from the Talos version; leave it out.",
		"runtime.DiskSelectorSpec.Match":            "CEL over disk, such as disk.size > 100u * GB.",
		"runtime.ProvisioningSpec.Wipe":             "Erases the disk first.",
	}
}

func legacyNotes() map[string]string {
	const (
		machine = "v1alpha1.MachineConfig."
		cluster = "v1alpha1.ClusterConfig."
		modern  = " From contract v1.14 on "
	)

	return map[string]string{
		machine + "MachineKubelet":                 "The kubelet." + modern + "KubeletConfig and KubeNodeConfig.",
		machine + "MachineNetwork":                 "Network." + modern + "LinkConfig, BondConfig and the like.",
		machine + "MachineInstall":                 "Where Talos is installed." + modern + "UnattendedInstallConfig.",
		machine + "MachineRegistries":              "Registries. Better RegistryMirrorConfig and its like.",
		machine + "MachineSysctls":                 "Kernel parameters." + modern + "SysctlConfig.",
		machine + "MachineSysfs":                   "Values in /sys." + modern + "SysfsConfig.",
		machine + "MachineKernel":                  "Kernel modules." + modern + "KernelModuleConfig.",
		machine + "MachineNodeLabels":              "Labels of the Node." + modern + "KubeNodeConfig.",
		machine + "MachineNodeAnnotations":         "Annotations of the Node." + modern + "KubeNodeConfig.",
		machine + "MachineNodeTaints":              "Taints of the Node, value:effect by key." + modern + "KubeNodeConfig.",
		machine + "MachineDisks":                   "Disks to partition and mount. Better UserVolumeConfig.",
		machine + "MachineFiles":                   "Files to write; only below /var." + modern + "EtcFileConfig.",
		machine + "MachineCertSANs":                "More names and addresses in the certificate of the Talos API.",
		machine + "MachineTime":                    "Time servers. Better TimeSyncConfig.",
		machine + "MachineEnv":                     "Environment of Talos' services. Better EnvironmentConfig.",
		machine + "MachineFeatures":                "Switches of Talos, such as KubePrism and host DNS.",
		cluster + "APIServerConfig":                "The API server." + modern + "KubeAPIServerConfig.",
		cluster + "ControllerManagerConfig":        "The controller manager." + modern + "KubeControllerManagerConfig.",
		cluster + "SchedulerConfig":                "The scheduler." + modern + "KubeSchedulerConfig.",
		cluster + "ProxyConfig":                    "kube-proxy." + modern + "KubeProxyConfig.",
		cluster + "CoreDNSConfig":                  "CoreDNS." + modern + "KubeCoreDNSConfig.",
		cluster + "ClusterNetwork":                 "CNI, pod and service networks. The networks follow from the Cluster.",
		cluster + "ClusterInlineManifests":         "Manifests that Talos applies." + modern + "KubeInlineManifestConfig.",
		cluster + "ExtraManifests":                 "URLs of manifests that Talos applies." + modern + "KubeExternalManifestConfig.",
		cluster + "AllowSchedulingOnControlPlanes": "Runs pods on control-plane machines." + modern + "KubeNodeConfig.",
	}
}
