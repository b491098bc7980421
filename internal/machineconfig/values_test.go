// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// document is one that Talos reads.
func document(kind, rest string) string {
	return fmt.Sprintf("{apiVersion: v1alpha1, kind: %s, %s}", kind, rest)
}

const (
	wireguard  = "name: wg0, privateKey: 0J8KXKAHZZpnBUKLwIQHPmkWUFNlpDdyVQpsFeMcTnc="
	peerKey    = "9xhSJHPKzPgLKzlZzSOXpf7ZcIIsAXCbEAKmvpBGKHk="
	peerKey2   = "8xhSJHPKzPgLKzlZzSOXpf7ZcIIsAXCbEAKmvpBGKHk="
	luks2      = "provider: luks2, keys: [{slot: 0, nodeID: {}}]"
	agentImage = "image: registry.example.com/agent:1.2.3"
)

// wrongValues has values that machinery takes and nothing on a node does. They are cases of TestWrongAlone.
var wrongValues = map[string]struct{ contract, document, want string }{
	"bond with a long name":       {"v1.14", document("BondConfig", "name: bond-of-the-storage, links: [eth0], bondMode: active-backup"), "BondConfig/bond-of-the-storage: /name: is no name for a link"},
	"VLAN with a slash":           {"v1.13", document("VLANConfig", "name: eth0/5, vlanID: 5, parent: eth0"), "VLANConfig/eth0/5: /name: is no name for a link"},
	"tiny MTU":                    {"v1.14", document("LinkConfig", "name: eth0, mtu: 15"), "LinkConfig/eth0: /mtu: is 15, and the kernel takes 68 to 65536"},
	"MTU of a route":              {"v1.14", document("LinkConfig", "name: eth0, routes: [{gateway: 10.0.0.1, mtu: 70000}]"), "LinkConfig/eth0: /routes/0/mtu: is 70000"},
	"MTU of a peer":               {"v1.14", document("VethConfig", "name: a, peer: {name: b, mtu: 1}"), "VethConfig/a: /peer/mtu: is 1"},
	"multicast address":           {"v1.14", document("LinkConfig", "name: eth0, addresses: [{address: 224.0.0.1/24}]"), "LinkConfig/eth0: /addresses/0/address: is a multicast address"},
	"route to nowhere":            {"v1.14", document("LinkConfig", "name: eth0, routes: [{metric: 10}]"), "LinkConfig/eth0: /routes/0: leads nowhere: set gateway"},
	"route of two families":       {"v1.14", document("LinkConfig", "name: eth0, routes: [{destination: '2001:db8::/32', gateway: 10.0.0.1}]"), "LinkConfig/eth0: /routes/0/gateway: 10.0.0.1 is of another address family"},
	"source of another family":    {"v1.14", document("LinkConfig", "name: eth0, routes: [{gateway: 10.0.0.1, source: '2001:db8::1'}]"), "LinkConfig/eth0: /routes/0/source: 2001:db8::1 is of another"},
	"rule of two families":        {"v1.14", document("RoutingRuleConfig", "name: '1000', src: 10.0.0.0/8, dst: '2001:db8::/32', table: '100'"), "RoutingRuleConfig/1000: /dst: 2001:db8::/32 and the source 10.0.0.0/8"},
	"ARP over IPv6":               {"v1.14", document("BondConfig", "name: b, links: [eth0], bondMode: active-backup, arpIpTargets: [10.0.0.1, '2001:db8::1']"), "BondConfig/b: /arpIpTargets/1: 2001:db8::1 is no IPv4 address"},
	"neighbours over IPv4":        {"v1.14", document("BondConfig", "name: b, links: [eth0], bondMode: active-backup, nsIp6Targets: [10.0.0.1]"), "BondConfig/b: /nsIp6Targets/0: 10.0.0.1 is no IPv6 address"},
	"bond out of range":           {"v1.14", document("BondConfig", "name: b, links: [eth0], bondMode: balance-rr, packetsPerSlave: 65536"), "BondConfig/b: /packetsPerSlave: is 65536, and the kernel takes at most 65535"},
	"peer twice":                  {"v1.14", document("WireguardConfig", wireguard+", peers: [{publicKey: "+peerKey+"}, {publicKey: "+peerKey+"}]"), "WireguardConfig/wg0: /peers/1/publicKey: is the key of peer 0 too"},
	"network behind two peers":    {"v1.14", document("WireguardConfig", wireguard+", peers: [{publicKey: "+peerKey+", allowedIPs: [10.1.0.0/24]}, {publicKey: "+peerKey2+", allowedIPs: [10.1.0.7/24]}]"), "WireguardConfig/wg0: /peers/1/allowedIPs/0: 10.1.0.7/24 is behind peer 0 too"},
	"keepalive for days":          {"v1.14", document("WireguardConfig", wireguard+", peers: [{publicKey: "+peerKey+", persistentKeepaliveInterval: 48h}]"), "WireguardConfig/wg0: /peers/0/persistentKeepaliveInterval: is 48h0m0s"},
	"slot that LUKS has not":      {"v1.14", document("VolumeConfig", "name: STATE, encryption: {provider: luks2, keys: [{slot: 32, nodeID: {}}]}"), "VolumeConfig/STATE: /encryption/keys/0/slot: is 32, and LUKS has the slots 0 to 31"},
	"two kinds of key":            {"v1.14", document("UserVolumeConfig", "name: a, provisioning: {diskSelector: {match: system_disk}, minSize: 1GiB}, encryption: {provider: luks2, keys: [{slot: 0, nodeID: {}, tpm: {}}]}"), "UserVolumeConfig/a: /encryption/keys/0: has nodeID and tpm, of which Talos takes one"},
	"key server that is none":     {"v1.14", document("SwapVolumeConfig", "name: a, provisioning: {diskSelector: {match: system_disk}, minSize: 1GiB}, encryption: {provider: luks2, keys: [{slot: 0, kms: {endpoint: 'my server'}}]}"), "SwapVolumeConfig/a: /encryption/keys/0/kms/endpoint: is no address of a key server"},
	"cipher that is none":         {"v1.14", document("RawVolumeConfig", "name: a, provisioning: {diskSelector: {match: system_disk}, minSize: 1GiB}, encryption: {cipher: rot13, "+luks2+"}"), "RawVolumeConfig/a: /encryption/cipher: is not known"},
	"sector of another size":      {"v1.14", document("VolumeConfig", "name: STATE, encryption: {blockSize: 100, "+luks2+"}"), "VolumeConfig/STATE: /encryption/blockSize: is 100 bytes"},
	"key of another size":         {"v1.14", document("VolumeConfig", "name: STATE, encryption: {keySize: 7, "+luks2+"}"), "VolumeConfig/STATE: /encryption/keySize: is 7 bits"},
	"option of encryption":        {"v1.14", document("VolumeConfig", "name: STATE, encryption: {options: [fast], "+luks2+"}"), "VolumeConfig/STATE: /encryption/options/0: is not known"},
	"legacy two kinds of key":     {"v1.13", "{machine: {systemDiskEncryption: {ephemeral: {provider: luks2, keys: [{slot: 0, nodeID: {}, kms: {endpoint: 'https://kms.example.com'}}]}}}}", "Config: /machine/systemDiskEncryption/ephemeral/keys/0: has nodeID and kms"},
	"legacy provider":             {"v1.13", "{machine: {systemDiskEncryption: {state: {provider: luks1, keys: [{slot: 0, nodeID: {}}]}}}}", `Config: /machine/systemDiskEncryption/state/provider: is "luks1": use luks2`},
	"size of a container's tmpfs": {"v1.14", document("ContainerConfig", "name: c, "+agentImage+", mounts: [{tmpfs: {destination: /tmp, size: lots}}]"), "ContainerConfig/c: /mounts/0/tmpfs/size: is no size"},

	"two hosts in one":             {"v1.14", document("StaticHostConfig", "name: 10.0.0.5, hostnames: [a, b c]"), "StaticHostConfig/10.0.0.5: /hostnames/1: is no host name"},
	"legacy host":                  {"v1.13", "{machine: {network: {extraHostEntries: [{ip: 10.0.0.5/32, aliases: [a]}]}}}", "Config: /machine/network/extraHostEntries/0/ip: is no IP address"},
	"legacy alias":                 {"v1.13", "{machine: {network: {extraHostEntries: [{ip: 10.0.0.5, aliases: [a, 'https://b']}]}}}", "Config: /machine/network/extraHostEntries/0/aliases/1: is no host name"},
	"legacy name server":           {"v1.13", "{machine: {network: {nameservers: [10.0.0.1, dns.example.com]}}}", "Config: /machine/network/nameservers/1: is no IP address"},
	"search domain":                {"v1.14", document("ResolverConfig", "searchDomains: {domains: ['example.com example.org']}"), "ResolverConfig: /searchDomains/domains/0: is no domain"},
	"time server with a scheme":    {"v1.14", document("TimeSyncConfig", "ntp: {servers: ['ntp://a.example.com']}"), "TimeSyncConfig: /ntp/servers/0: is no host name and no IP address"},
	"legacy time server":           {"v1.13", "{machine: {time: {servers: [a b]}}}", "Config: /machine/time/servers/0: is no host name"},
	"clock without a path":         {"v1.14", document("TimeSyncConfig", "ptp: {devices: [ptp0]}"), "TimeSyncConfig: /ptp/devices/0: is no clock device"},
	"probe without a port":         {"v1.14", document("TCPProbeConfig", "name: a, endpoint: proxy.example.com"), "TCPProbeConfig/a: /endpoint: has no host and port"},
	"event sink with a named port": {"v1.14", document("EventSinkConfig", "endpoint: 'sink.example.com:https'"), `EventSinkConfig: /endpoint: has the port "https"`},
	"port out of range":            {"v1.14", document("KmsgLogConfig", "name: a, url: 'tcp://logs.example.com:70000/'"), `KmsgLogConfig/a: /url: has the port "70000"`},
	"mirror of a URL":              {"v1.14", document("RegistryMirrorConfig", "name: 'https://docker.io', endpoints: [{url: 'https://m.example.com'}]"), "RegistryMirrorConfig/https://docker.io: /name: is no host of a registry"},
	"mirror without a scheme":      {"v1.13", "{machine: {registries: {mirrors: {docker.io: {endpoints: ['registry.example.com:5000']}}}}}", "Config: /machine/registries/mirrors/docker.io/endpoints/0: is no URL of a registry"},
	"legacy mirror of a URL":       {"v1.13", "{machine: {registries: {mirrors: {'https://docker.io': {endpoints: ['https://m.example.com']}}}}}", "Config: /machine/registries/mirrors/https:~1~1docker.io: is no host of a registry"},
	"legacy login of a path":       {"v1.13", "{machine: {registries: {config: {ghcr.io/org: {tls: {insecureSkipVerify: true}}}}}}", "Config: /machine/registries/config/ghcr.io~1org: is no host of a registry"},
	"log without a port":           {"v1.13", "{machine: {logging: {destinations: [{endpoint: 'udp://10.0.0.1', format: json_lines}]}}}", "Config: /machine/logging/destinations/0/endpoint: has no host and port"},
	"disk without a path":          {"v1.13", "{machine: {install: {disk: sda}}}", "Config: /machine/install/disk: is no device, and Talos would not be installed"},
	"part of a path":               {"v1.13", "{cluster: {apiServer: {extraVolumes: [{hostPath: var/audit, mountPath: /var/audit}]}}}", "Config: /cluster/apiServer/extraVolumes/0/hostPath: is no whole path"},
	"API server for itself":        {"v1.13", "{cluster: {apiServer: {extraArgs: {bind-address: '127.0.0.1'}}}}", "Config: /cluster/apiServer/extraArgs/bind-address: leaves the API server to its own machine"},
	"kernel defaults off":          {"v1.13", "{machine: {kubelet: {extraArgs: {protect-kernel-defaults: 'false'}}}}", "Config: /machine/kubelet/extraArgs/protect-kernel-defaults: set by Talos itself"},
	"trust in a path":              {"v1.14", document("RegistryTLSConfig", "name: docker.io/library, insecureSkipVerify: true"), "RegistryTLSConfig/docker.io/library: /name: is no host"},
	"certificate for a URL":        {"v1.14", "{machine: {certSANs: [a.example.com, 'https://b.example.com']}}", "Config: /machine/certSANs/1: is nothing that a certificate can be for"},
	"certificate for an umlaut":    {"v1.14", document("KubeAPIServerConfig", "certExtraSANs: [käse.example.com]"), "KubeAPIServerConfig: /certExtraSANs/0: is nothing"},
	"legacy certificate":           {"v1.13", "{cluster: {apiServer: {certSANs: ['10.0.0.1:6443']}}}", "Config: /cluster/apiServer/certSANs/0: is nothing"},
	"port of the API server":       {"v1.14", document("KubeAPIServerConfig", "apiPort: 70000"), "KubeAPIServerConfig: /apiPort: is 70000"},
	"legacy port":                  {"v1.13", "{cluster: {controlPlane: {localAPIServerPort: -1}}}", "Config: /cluster/controlPlane/localAPIServerPort: is -1"},
	"DNS by name":                  {"v1.14", document("KubeletConfig", "clusterDNS: [dns.example.com]"), "KubeletConfig: /clusterDNS/0: is no IP address"},
	"legacy DNS by name":           {"v1.13", "{machine: {kubelet: {clusterDNS: [dns.example.com]}}}", "Config: /machine/kubelet/clusterDNS/0: is no IP address"},
	"namespace that is none":       {"v1.14", document("KubeTalosAPIAccessConfig", "allowedRoles: ['os:reader'], allowedKubernetesNamespaces: [Kube_System]"), "KubeTalosAPIAccessConfig: /allowedKubernetesNamespaces/0: is no name"},
	"manifest from no host":        {"v1.14", document("KubeExternalManifestConfig", "name: a, url: 'https:///a.yaml'"), "KubeExternalManifestConfig/a: /url: has no host"},

	"roots that are none":                        {"v1.14", document("TrustedRootsConfig", "name: a, certificates: none"), "TrustedRootsConfig/a: /certificates: has no certificate"},
	"subject as no pattern":                      {"v1.14", document("ImageVerificationConfig", "rules: [{image: 'docker.io/*', keyless: {issuer: 'https://accounts.example.com', subjectRegex: '(['}}]"), "ImageVerificationConfig: /rules/0/keyless/subjectRegex: is no regular expression"},
	"key of images":                              {"v1.14", document("ImageVerificationConfig", "rules: [{image: 'docker.io/*', publicKey: {certificate: none}}]"), "ImageVerificationConfig: /rules/0/publicKey/certificate: has no certificate"},
	"file of an extension":                       {"v1.14", document("ExtensionServiceConfig", "name: nut, configFiles: [{content: a, mountPath: etc/nut}]"), "ExtensionServiceConfig/nut: /configFiles/0/mountPath: is no whole path"},
	"variable of one":                            {"v1.14", document("ExtensionServiceConfig", "name: nut, environment: [NAME]"), "ExtensionServiceConfig/nut: /environment/0: is no environment variable"},
	"device by a name":                           {"v1.14", document("PCIDriverRebindConfig", "name: nvidia, targetDriver: vfio-pci"), "PCIDriverRebindConfig/nvidia: /name: is no PCI address"},
	"watchdog by a name":                         {"v1.14", document("WatchdogTimerConfig", "device: watchdog0"), "WatchdogTimerConfig: /device: is no device"},
	"another part of etcd":                       {"v1.14", document("KubeAPIServerConfig", "extraArgs: {etcd-prefix: /other}"), "KubeAPIServerConfig: /extraArgs/etcd-prefix: set by Talos itself"},
	"another etcd":                               {"v1.13", "{cluster: {apiServer: {extraArgs: {etcd-servers-overrides: '/events#http://10.0.0.1:2379'}}}}", "Config: /cluster/apiServer/extraArgs/etcd-servers-overrides: set by Talos itself"},
	"etcd without syncing":                       {"v1.14", "{cluster: {etcd: {extraArgs: {unsafe-no-fsync: 'true'}}}}", "Config: /cluster/etcd/extraArgs/unsafe-no-fsync: loses what etcd has confirmed"},
	"etcd without checks":                        {"v1.14", "{cluster: {etcd: {extraArgs: {strict-reconfig-check: 'false'}}}}", "Config: /cluster/etcd/extraArgs/strict-reconfig-check: lets a change of members break the quorum"},
	"etcd from a discovery":                      {"v1.13", "{cluster: {etcd: {extraArgs: {discovery-srv: example.com}}}}", "Config: /cluster/etcd/extraArgs/discovery-srv: set by Talos itself"},
	"one address of members":                     {"v1.14", "{cluster: {etcd: {extraArgs: {initial-advertise-peer-urls: 'https://10.0.0.1:2380'}}}}", "Config: /cluster/etcd/extraArgs/initial-advertise-peer-urls: would have every member"},
	"etcd check of Talos":                        {"v1.13", "{cluster: {etcd: {extraArgs: {experimental-initial-corrupt-check: 'true'}}}}", "Config: /cluster/etcd/extraArgs/experimental-initial-corrupt-check: set by Talos itself, and etcd would not start with it in the config: remove it"},
	"etcd check of the next Talos":               {"v1.14", "{cluster: {etcd: {extraArgs: {experimental-initial-corrupt-check: 'true'}}}}", "Config: /cluster/etcd/extraArgs/experimental-initial-corrupt-check: set by Talos itself, and etcd would not start with it in the config: remove it"},
	"etcd hashes of Talos":                       {"v1.12", "{cluster: {etcd: {extraArgs: {experimental-compact-hash-check-enabled: 'true'}}}}", "Config: /cluster/etcd/extraArgs/experimental-compact-hash-check-enabled: set by Talos itself, and etcd would not start with it in the config: remove it"},
	"etcd progress of Talos":                     {"v1.13", "{cluster: {etcd: {extraArgs: {experimental-watch-progress-notify-interval: 5s}}}}", "Config: /cluster/etcd/extraArgs/experimental-watch-progress-notify-interval: set by Talos itself, and etcd would not start with it in the config: remove it"},
	"networks of pods, for a controller":         {"v1.14", document("KubeControllerManagerConfig", "extraArgs: {cluster-cidr: 10.1.0.0/16}"), "KubeControllerManagerConfig: /extraArgs/cluster-cidr: comes from spec.clusterNetwork.pods of the Cluster"},
	"networks of services, for a legacy program": {"v1.13", "{cluster: {apiServer: {extraArgs: {service-cluster-ip-range: 10.2.0.0/16}}}}", "Config: /cluster/apiServer/extraArgs/service-cluster-ip-range: comes from spec.clusterNetwork.services"},
	"networks of pods, for a legacy proxy":       {"v1.12", "{cluster: {proxy: {extraArgs: {cluster-cidr: 10.1.0.0/16}}}}", "Config: /cluster/proxy/extraArgs/cluster-cidr: comes from spec.clusterNetwork.pods"},
	"domain of services, for a kubelet":          {"v1.14", document("KubeletConfig", "extraArgs: {cluster-domain: example.com}"), "KubeletConfig: /extraArgs/cluster-domain: comes from spec.clusterNetwork.serviceDomain"},
	"selector of nothing":                        {"v1.14", document("UserVolumeConfig", "name: a, provisioning: {diskSelector: {match: 'system_disk && false'}, maxSize: 1GiB}"), "UserVolumeConfig/a: /provisioning/diskSelector/match: is false whatever is looked at"},
	"selector in quotes":                         {"v1.14", document("RawVolumeConfig", "name: a, provisioning: {diskSelector: {match: '\"disk.transport\" == \"nvme\"'}, maxSize: 1GiB}"), "RawVolumeConfig/a: /provisioning/diskSelector/match: is false whatever is looked at"},
	"kubelet's directory":                        {"v1.14", document("KubeletConfig", "extraArgs: {root-dir: /var/kubelet}"), "KubeletConfig: /extraArgs/root-dir: set by Talos itself"},
}

// wrongLegacy has the same of the legacy document, and names. They are cases of TestWrongAlone.
var wrongLegacy = map[string]struct{ contract, document, want string }{
	"link by a sentence":     {"v1.14", document("DHCPv4Config", "name: the first one"), "DHCPv4Config/the first one: /name: is no name of a link"},
	"member by a path":       {"v1.14", document("BridgeConfig", "name: br0, links: [/dev/eth0]"), "BridgeConfig/br0: /links/0: is no name of a link"},
	"hold time of a second":  {"v1.14", document("BGPInstanceConfig", "name: a, localASN: 65000, neighbors: [{address: 10.0.0.1, peerASN: 65001, holdTime: 1s}]"), "BGPInstanceConfig/a: /neighbors/0/holdTime: is 1s"},
	"backend of Flannel":     {"v1.14", document("KubeFlannelCNIConfig", "backendType: vxlan2"), `KubeFlannelCNIConfig: /backendType: is "vxlan2"`},
	"variable of a pod":      {"v1.14", document("KubeSchedulerConfig", "env: {'a b': c}"), "KubeSchedulerConfig: /env/a b: is no name of an environment variable"},
	"variable":               {"v1.12", "{machine: {env: {a-b: c}}}", "Config: /machine/env/a-b: is no name"},
	"legacy variable":        {"v1.13", "{cluster: {apiServer: {env: {'1=': c}}}}", "Config: /cluster/apiServer/env/1=: is no name"},
	"name of the Node":       {"v1.14", document("KubeletConfig", "extraArgs: {hostname-override: other}"), "KubeletConfig: /extraArgs/hostname-override: set by Talos itself"},
	"legacy hostname":        {"v1.13", "{machine: {network: {hostname: My Host}}}", "Config: /machine/network/hostname: not a hostname"},
	"legacy MTU below zero":  {"v1.13", "{machine: {network: {interfaces: [{interface: eth0, dhcp: true, mtu: -5}]}}}", "Config: /machine/network/interfaces/0/mtu: is -5"},
	"legacy route":           {"v1.13", "{machine: {network: {interfaces: [{interface: eth0, dhcp: true, routes: [{network: '2001:db8::/32', gateway: 10.0.0.1}]}]}}}", "Config: /machine/network/interfaces/0/routes/0/gateway: 10.0.0.1 is of another address family"},
	"legacy tag":             {"v1.12", "{machine: {network: {interfaces: [{interface: eth0, dhcp: true, vlans: [{vlanId: 5000, dhcp: true}]}]}}}", "Config: /machine/network/interfaces/0/vlans/0/vlanId: is 5000"},
	"mount to nowhere":       {"v1.13", "{machine: {kubelet: {extraMounts: [{destination: data, source: /var/data, type: bind}]}}}", "Config: /machine/kubelet/extraMounts/0/destination: is no whole path"},
	"mount of nothing":       {"v1.13", "{machine: {kubelet: {extraMounts: [{destination: /var/data, source: data, options: [rbind]}]}}}", "Config: /machine/kubelet/extraMounts/0/source: is no whole path"},
	"option of a mount":      {"v1.13", "{machine: {kubelet: {extraMounts: [{destination: /var/a, source: /var/a, type: bind, options: [bind, rshard]}]}}}", `Config: /machine/kubelet/extraMounts/0/options/1: "rshard" is no option of a bind mount`},
	"disk by a name":         {"v1.13", "{machine: {disks: [{device: sdb, partitions: [{mountpoint: /var/mnt/a}]}]}}", "Config: /machine/disks/0/device: is no device"},
	"disk outside of /var":   {"v1.13", "{machine: {disks: [{device: /dev/sdb, partitions: [{mountpoint: /data}]}]}}", `Config: /machine/disks/0/partitions/0/mountpoint: "/data" is not under /var`},
	"disk over etcd's data":  {"v1.12", "{machine: {disks: [{device: /dev/sdb, partitions: [{mountpoint: /var/lib/etcd}]}]}}", `Config: /machine/disks/0/partitions/0/mountpoint: "/var/lib/etcd" lies over`},
	"profile in a folder":    {"v1.13", "{machine: {seccompProfiles: [{name: ../audit.json, value: {defaultAction: SCMP_ACT_LOG}}]}}", "Config: /machine/seccompProfiles/0/name: is no name of a file"},
	"legacy mode of a proxy": {"v1.13", "{cluster: {proxy: {mode: userspace}}}", `Config: /cluster/proxy/mode: is "userspace"`},
	"manifest from a text":   {"v1.13", "{cluster: {extraManifests: [not a url]}}", "Config: /cluster/extraManifests/0: is no URL"},
}

// wrongTogether has what only the merged config shows: a patch of it may be right.
var wrongTogether = map[string]struct{ contract, document, want string }{
	"a link in two others": {
		"v1.14", document("BondConfig", "name: bond0, links: [eth0, eth1], bondMode: active-backup") + "\n---\n" + document("BridgeConfig", "name: br0, links: [eth1]"),
		"BridgeConfig/br0: /links/0: eth1 is in BondConfig/bond0 (/links/1) too, and a link can be in one other",
	},
	"legacy bond of nothing": {"v1.12", "{machine: {network: {interfaces: [{interface: bond0, dhcp: true, bond: {mode: 802.3ad}}]}}}", "Config: /machine/network/interfaces/0/bond/interfaces: is empty"},
	"a link twice":           {"v1.14", document("BondConfig", "name: bond0, links: [eth0, eth0], bondMode: active-backup"), "BondConfig/bond0: /links/1: eth0 is in this list twice"},
	"a link in a legacy bond too": {
		"v1.13", "{machine: {network: {interfaces: [{interface: bond0, bond: {mode: active-backup, interfaces: [eth0]}}]}}}\n---\n" + document("BridgeConfig", "name: br0, links: [eth0]"),
		"BridgeConfig/br0: /links/0: eth0 is in Config (/machine/network/interfaces/0/bond/interfaces/0) too",
	},
	"a bond of itself": {"v1.14", document("BondConfig", "name: bond0, links: [bond0], bondMode: active-backup"), "BondConfig/bond0: /links/0: leads back to the link itself (bond0 on bond0)"},
	"a VLAN of itself": {"v1.14", document("VLANConfig", "name: a.5, vlanID: 5, parent: a.5"), "VLANConfig/a.5: /parent: leads back to the link itself"},
	"a circle of three": {
		"v1.14", document("BridgeConfig", "name: br0, links: [vlan5]") + "\n---\n" + document("VLANConfig", "name: vlan5, vlanID: 5, parent: bond0") + "\n---\n" +
			document("BondConfig", "name: bond0, links: [br0], bondMode: active-backup"),
		"VLANConfig/vlan5: /parent: leads back to the link itself (bond0 on br0 on vlan5 on bond0)",
	},
	"a tag twice": {
		"v1.14", document("VLANConfig", "name: a, vlanID: 5, parent: eth0") + "\n---\n" + document("VLANConfig", "name: b, vlanID: 5, parent: eth0"),
		"VLANConfig/b: /vlanID: VLANConfig/a has the same tag on eth0",
	},
	"two links of a name": {
		"v1.14", document("BondConfig", "name: a, links: [eth0], bondMode: active-backup") + "\n---\n" + document("DummyLinkConfig", "name: a"),
		"DummyLinkConfig/a: /name: BondConfig/a is of the same name, and a machine has one link of a name",
	},
	"a peer of the name of a link": {
		"v1.14", document("DummyLinkConfig", "name: a") + "\n---\n" + document("VethConfig", "name: b, peer: {name: a}"),
		"VethConfig/b: /peer/name: DummyLinkConfig/a is of the same name",
	},
	"two volumes of a name": {
		"v1.14", document("UserVolumeConfig", "name: a, volumeType: directory") + "\n---\n" + document("ExistingVolumeConfig", "name: a, discovery: {volumeSelector: {match: 'true'}}"),
		"ExistingVolumeConfig/a: /name: UserVolumeConfig/a is of the same name, and a machine has one volume below /var/mnt of a name",
	},
	"links checked in two ways": {"v1.14", document("BondConfig", "name: b, links: [eth0], bondMode: active-backup, miimon: 100, arpInterval: 100, arpIpTargets: [10.0.0.1]"), "BondConfig/b: /arpInterval: checks the links in another way than miimon"},
	"links checked by nobody":   {"v1.14", document("BondConfig", "name: b, links: [eth0], bondMode: active-backup, arpInterval: 100"), "BondConfig/b: /arpInterval: needs an address that answers"},
	"a volume that is not there": {
		"v1.14", document("ContainerConfig", "name: c, "+agentImage+", mounts: [{userVolume: {name: data, destination: /data}}]"),
		`ContainerConfig/c: /mounts/0/userVolume/name: the machine has no volume "data"`,
	},
	"a quantity that is none":          {"v1.14", document("KubeAPIServerConfig", "resources: {requests: {cpu: lots}}"), "KubeAPIServerConfig: /resources/requests/cpu: is no quantity"},
	"a limit below the request":        {"v1.14", document("KubeSchedulerConfig", "resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}"), "KubeSchedulerConfig: /resources/limits/memory: is 1Gi, less than the 2Gi"},
	"a limit below what Talos asks":    {"v1.14", document("KubeAPIServerConfig", "resources: {limits: {memory: 256Mi}}"), "KubeAPIServerConfig: /resources/limits/memory: is 256Mi, less than the 512Mi"},
	"a legacy limit below the request": {"v1.13", "{cluster: {controllerManager: {resources: {requests: {cpu: '2'}, limits: {cpu: '1'}}}}}", "Config: /cluster/controllerManager/resources/limits/cpu: is 1, less than the 2"},
	"KubePrism on the API's port":      {"v1.14", document("KubePrismConfig", "port: 6443"), "KubePrismConfig: /port: 6443 is the port of the API server"},
	"KubePrism on etcd's port":         {"v1.13", "{machine: {features: {kubePrism: {enabled: true, port: 2379}}}}", "Config: /machine/features/kubePrism/port: 2379 is the port of etcd"},
	"a pod of Talos' name": {
		"v1.14", document("KubeStaticPodConfig", "name: a, pod: {apiVersion: v1, kind: Pod, metadata: {name: kube-apiserver, namespace: kube-system}, spec: {containers: [{name: a, image: b}]}}"),
		"KubeStaticPodConfig/a: /pod: has the name of Talos' own pod kube-system/kube-apiserver",
	},
	"networks of pods":                 {"v1.14", document("KubeNetworkConfig", "podSubnets: [10.1.0.0/16]"), "KubeNetworkConfig: /podSubnets: comes from spec.clusterNetwork.pods of the Cluster"},
	"legacy networks":                  {"v1.13", "{cluster: {network: {serviceSubnets: [nonsense]}}}", "Config: /cluster/network/serviceSubnets: comes from spec.clusterNetwork.services"},
	"kubelet of another version":       {"v1.14", document("KubeletConfig", "image: 'registry.example.com/kubelet:v1.33.0'"), "KubeletConfig: /image: is of Kubernetes v1.33.0, and the Machine says v1.34.2"},
	"legacy API server of another":     {"v1.13", "{cluster: {apiServer: {image: 'registry.k8s.io/kube-apiserver:v1.34.1'}}}", "Config: /cluster/apiServer/image: is of Kubernetes v1.34.1"},
	"image that is none":               {"v1.14", "{cluster: {etcd: {image: No Image}}}", "Config: /cluster/etcd/image: is no name of an image"},
	"etcd flag with a typo":            {"v1.13", "{cluster: {etcd: {extraArgs: {election-timout: '5000'}}}}", "Config: /cluster/etcd/extraArgs/election-timout: etcd 3.6 has no such flag, and would not start: did you mean election-timeout?"},
	"etcd flag of long ago":            {"v1.12", "{cluster: {etcd: {extraArgs: {enable-v2: 'true'}}}}", "Config: /cluster/etcd/extraArgs/enable-v2: etcd 3.6 has no such flag"},
	"etcd flag of the one before":      {"v1.14", "{cluster: {etcd: {extraArgs: {experimental-corrupt-check-time: 4h}}}}", "Config: /cluster/etcd/extraArgs/experimental-corrupt-check-time: is no flag of etcd 3.7 any more, which would not start: write corrupt-check-time"},
	"mount that cannot be made":        {"v1.13", "{machine: {kubelet: {extraMounts: [{destination: /var/data, type: bind, source: /data, options: [bind, rw]}]}}}", "Config: /machine/kubelet/extraMounts/0/source: \"/data\" is neither there nor can Talos make it"},
	"etcd gate of the one before":      {"v1.14", "{cluster: {etcd: {extraArgs: {experimental-enable-lease-checkpoint: 'true'}}}}", "Config: /cluster/etcd/extraArgs/experimental-enable-lease-checkpoint: is no flag of etcd 3.7 any more, which would not start: remove it, since from Talos 1.14 on"},
	"etcd gates of Talos":              {"v1.14", "{cluster: {etcd: {extraArgs: {feature-gates: 'SetMemberLocalAddr=true'}}}}", "Config: /cluster/etcd/extraArgs/feature-gates: set by Talos itself, and etcd would not start with it in the config: remove it"},
	"etcd gates of Talos and an image": {"v1.14", "{cluster: {etcd: {image: 'registry.k8s.io/etcd:v3.6.8', extraArgs: {feature-gates: 'SetMemberLocalAddr=true'}}}}", "Config: /cluster/etcd/extraArgs/feature-gates: set by Talos itself, and etcd would not start with it in the config: remove it"},
	"etcd progress of the next Talos":  {"v1.14", "{cluster: {etcd: {extraArgs: {watch-progress-notify-interval: 5m}}}}", "Config: /cluster/etcd/extraArgs/watch-progress-notify-interval: set by Talos itself, and etcd would not start with it in the config: remove it"},
	"etcd by HTTP":                     {"v1.14", "{cluster: {etcd: {extraArgs: {listen-client-http-urls: 'http://127.0.0.1:2390'}}}}", "Config: /cluster/etcd/extraArgs/listen-client-http-urls: set by Talos itself, and etcd would not start with it in the config: remove it"},
	"etcd gate of old Talos":           {"v1.13", "{cluster: {etcd: {extraArgs: {feature-gates: 'SetMemberLocalAddr=true,InitialCorruptCheck=true'}}}}", "Config: /cluster/etcd/extraArgs/feature-gates: names InitialCorruptCheck, which Talos sets itself with the flag experimental-initial-corrupt-check"},
	"etcd gate of older Talos":         {"v1.12", "{cluster: {etcd: {extraArgs: {feature-gates: 'CompactHashCheck=false'}}}}", "Config: /cluster/etcd/extraArgs/feature-gates: names CompactHashCheck, which Talos sets itself"},
	"etcd gate and its flag":           {"v1.13", "{cluster: {etcd: {extraArgs: {feature-gates: 'LeaseCheckpoint=true', experimental-enable-lease-checkpoint: 'true'}}}}", "Config: /cluster/etcd/extraArgs/feature-gates: names LeaseCheckpoint, which the flag experimental-enable-lease-checkpoint sets as well"},
	"etcd gate of the next one":        {"v1.13", "{cluster: {etcd: {extraArgs: {feature-gates: 'FastLeaseKeepAlive=true'}}}}", `Config: /cluster/etcd/extraArgs/feature-gates: is "FastLeaseKeepAlive=true", and etcd takes the names of its feature gates`},
	"etcd origin without a port":       {"v1.13", "{cluster: {etcd: {extraArgs: {cors: 'https://ui.example.com'}}}}", `Config: /cluster/etcd/extraArgs/cors: is "https://ui.example.com", and etcd takes * alone, or URLs with a port and no path`},
	"etcd origin with a path":          {"v1.14", "{cluster: {etcd: {extraArgs: {cors: 'https://ui.example.com:443/'}}}}", `Config: /cluster/etcd/extraArgs/cors: is "https://ui.example.com:443/"`},
	"etcd origin and all":              {"v1.14", "{cluster: {etcd: {extraArgs: {cors: '*,https://ui.example.com:443'}}}}", `Config: /cluster/etcd/extraArgs/cors: is "*,https://ui.example.com:443"`},
	"etcd origin of a file":            {"v1.14", "{cluster: {etcd: {extraArgs: {cors: 'ftp://ui.example.com:21'}}}}", `Config: /cluster/etcd/extraArgs/cors: is "ftp://ui.example.com:21"`},
	"etcd too old for Talos":           {"v1.14", "{cluster: {etcd: {image: 'registry.k8s.io/etcd:3.5.21-0', extraArgs: {enable-v2: 'false'}}}}", "Config: /cluster/etcd/image: is etcd 3.5, which does not start with flags that Talos v1.14.0 gives it"},
	"etcd too new for Talos":           {"v1.13", "{cluster: {etcd: {image: 'registry.k8s.io/etcd:v3.7.1'}}}", "Config: /cluster/etcd/image: is etcd 3.7, which does not start with flags that Talos v1.13.0 gives it"},
	"etcd duration":                    {"v1.13", "{cluster: {etcd: {extraArgs: {corrupt-check-time: '12'}}}}", `Config: /cluster/etcd/extraArgs/corrupt-check-time: is "12", and etcd takes a duration`},
	"etcd experimental duration":       {"v1.13", "{cluster: {etcd: {extraArgs: {experimental-corrupt-check-time: '12'}}}}", `Config: /cluster/etcd/extraArgs/experimental-corrupt-check-time: is "12", and etcd takes a duration`},
	"etcd yes":                         {"v1.13", "{cluster: {etcd: {extraArgs: {enable-pprof: 'yes'}}}}", `Config: /cluster/etcd/extraArgs/enable-pprof: is "yes", and etcd takes true or false`},
	"etcd metrics without a URL":       {"v1.13", "{cluster: {etcd: {extraArgs: {listen-metrics-urls: '0.0.0.0:2381'}}}}", "Config: /cluster/etcd/extraArgs/listen-metrics-urls: is \"0.0.0.0:2381\", and etcd takes URLs with an IP address and a port"},
	"etcd log level":                   {"v1.13", "{cluster: {etcd: {extraArgs: {log-level: verbose}}}}", "Config: /cluster/etcd/extraArgs/log-level: is \"verbose\", and etcd takes one of debug, info"},
	"etcd version of TLS":              {"v1.13", "{cluster: {etcd: {extraArgs: {tls-min-version: '1.2'}}}}", "Config: /cluster/etcd/extraArgs/tls-min-version: is \"1.2\", and etcd takes one of TLS1.2, TLS1.3"},
	"etcd cipher":                      {"v1.13", "{cluster: {etcd: {extraArgs: {cipher-suites: TLS_FOO}}}}", "Config: /cluster/etcd/extraArgs/cipher-suites: is \"TLS_FOO\", and etcd takes names of cipher suites"},
	"etcd feature gate":                {"v1.13", "{cluster: {etcd: {extraArgs: {feature-gates: 'Fast=true'}}}}", "Config: /cluster/etcd/extraArgs/feature-gates: is \"Fast=true\", and etcd takes the names of its feature gates"},
	"etcd revisions in hours":          {"v1.13", "{cluster: {etcd: {extraArgs: {auto-compaction-mode: revision, auto-compaction-retention: 8h}}}}", "Config: /cluster/etcd/extraArgs/auto-compaction-retention: is no number, and with the mode revision"},
	"snapshots below zero":             {"v1.14", "{cluster: {etcd: {extraArgs: {snapshot-count: '-1'}}}}", `Config: /cluster/etcd/extraArgs/snapshot-count: is "-1", and etcd takes a whole number`},
	"quota with a unit":                {"v1.14", "{cluster: {etcd: {extraArgs: {quota-backend-bytes: 8GiB}}}}", `Config: /cluster/etcd/extraArgs/quota-backend-bytes: is "8GiB", and etcd takes a whole number`},
	"mode of compaction":               {"v1.14", "{cluster: {etcd: {extraArgs: {auto-compaction-mode: hourly}}}}", `Config: /cluster/etcd/extraArgs/auto-compaction-mode: is "hourly", and etcd takes one of periodic, revision`},
	"times of etcd":                    {"v1.14", "{cluster: {etcd: {extraArgs: {heartbeat-interval: '500'}}}}", "Config: /cluster/etcd/extraArgs/heartbeat-interval: etcd would not start: its election-timeout (1000 ms) must be at least 5 times"},
	"addresses of etcd":                {"v1.14", "{cluster: {etcd: {advertisedSubnets: [10.0.0.0/8, '!10.0.0.0/8']}}}", "Config: /cluster/etcd/advertisedSubnets: leaves no address"},
	"no address to listen on":          {"v1.13", "{cluster: {etcd: {listenSubnets: ['!0.0.0.0/0', '!::/0']}}}", "Config: /cluster/etcd/listenSubnets: leaves no address"},
	"addresses of the kubelet":         {"v1.14", document("KubeNodeConfig", "nodeIP: {validSubnets: [10.1.0.0/16, '!10.0.0.0/8']}"), "KubeNodeConfig: /nodeIP/validSubnets: leaves no address"},
	"legacy addresses":                 {"v1.12", "{machine: {kubelet: {nodeIP: {validSubnets: [10.1.0.0/16, '!10.1.0.0/16']}}}}", "Config: /machine/kubelet/nodeIP/validSubnets: leaves no address"},
	"tiny volume":                      {"v1.14", document("UserVolumeConfig", "name: a, provisioning: {diskSelector: {match: system_disk}, maxSize: 10MiB}"), "UserVolumeConfig/a: /provisioning/maxSize: is 10 MiB, and XFS needs at least 16 MiB"},
	"tiny encrypted volume":            {"v1.14", document("UserVolumeConfig", "name: a, provisioning: {diskSelector: {match: system_disk}, maxSize: 20MiB}, encryption: {"+luks2+"}"), "UserVolumeConfig/a: /provisioning/maxSize: is 20 MiB, and XFS needs at least 32 MiB"},
	"tiny EPHEMERAL":                   {"v1.13", document("VolumeConfig", "name: EPHEMERAL, provisioning: {maxSize: 100MiB}"), "VolumeConfig/EPHEMERAL: /provisioning/maxSize: is 100 MiB, and a machine needs at least 2048 MiB"},
	"nodes to score":                   {"v1.14", document("KubeSchedulerConfig", "config: {percentageOfNodesToScore: 500}"), "KubeSchedulerConfig: /config/percentageOfNodesToScore: is 500"},
	"profiles of a name":               {"v1.13", "{cluster: {scheduler: {config: {profiles: [{schedulerName: a}, {schedulerName: a}]}}}}", "Config: /cluster/scheduler/config/profiles/1/schedulerName: is a as in another profile"},
	"mode of kube-proxy":               {"v1.14", document("KubeProxyConfig", "config: {mode: eBPF}"), `KubeProxyConfig: /config/mode: is "eBPF"`},
	"pods of kube-proxy":               {"v1.14", document("KubeProxyConfig", "config: {clusterCIDR: '10.244.0.0/16,nope'}"), "KubeProxyConfig: /config/clusterCIDR: is no network"},
	"address of a metric":              {"v1.14", document("KubeProxyConfig", "config: {metricsBindAddress: 0.0.0.0}"), "KubeProxyConfig: /config/metricsBindAddress: must be an IP address and a port"},
}

func TestWrongTogether(t *testing.T) {
	t.Parallel()

	for name, tc := range wrongTogether {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			err := renderTalos(t, tc.contract, tc.document)
			if err == nil || !strings.HasPrefix(err.Error(), bad+"spec.documents[0]: "+tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}

			if err := admitTalos(t, tc.document); err != nil {
				t.Errorf("admission refuses what another patch may make right: %v", err)
			}
		})
	}
}

// admitTalos looks at a patch of a document as Talos writes it as admission does.
func admitTalos(t *testing.T, document string) error {
	t.Helper()

	object := &bootstrapv1.TalosConfigPatch{ObjectMeta: metav1.ObjectMeta{Name: "bad", Namespace: namespace}}
	object.Spec.Layer = bootstrapv1.PatchLayerCluster

	patch, err := machineconfig.TalosPatch(object, document)
	if err != nil {
		t.Fatal(err)
	}

	return patch.Check()
}

// TestRightValues has what looks like the above and is meant.
func TestRightValues(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct{ contract, document string }{
		"links on links": {
			"v1.14", document("BondConfig", "name: bond0, links: [eth0, eth1], bondMode: 802.3ad, miimon: 100, updelay: 200, lacpRate: fast") + "\n---\n" +
				document("VLANConfig", "name: bond0.5, vlanID: 5, parent: bond0") + "\n---\n" + document("VLANConfig", "name: bond0.6, vlanID: 6, parent: bond0, mtu: 9000") + "\n---\n" +
				document("BridgeConfig", "name: br0, links: [bond0.5]"),
		},
		"a bond by ARP":           {"v1.14", document("BondConfig", "name: b, links: [eth0], bondMode: active-backup, miimon: 0, arpInterval: 100, arpIpTargets: [10.0.0.1]")},
		"loopback":                {"v1.14", document("LinkConfig", "name: lo, mtu: 65536, addresses: [{address: 192.0.2.1/32}]")},
		"routes of both families": {"v1.14", document("LinkConfig", "name: eth0, routes: [{gateway: 10.0.0.1, source: 10.0.0.5}, {destination: '2001:db8::/32', gateway: 'fe80::1'}, {destination: 10.9.0.0/16}]")},
		"two peers":               {"v1.14", document("WireguardConfig", wireguard+", peers: [{publicKey: "+peerKey+", allowedIPs: [10.1.0.0/24], persistentKeepaliveInterval: 25s}, {publicKey: "+peerKey2+", allowedIPs: [10.1.0.0/16, '::/0']}]")},
		"keys of all kinds": {
			"v1.14", document("VolumeConfig", "name: EPHEMERAL, encryption: {provider: luks2, cipher: aes-xts-plain64, keySize: 512, blockSize: 4096, options: [no_read_workqueue, no_write_workqueue], "+
				"keys: [{slot: 0, tpm: {}}, {slot: 1, kms: {endpoint: 'https://kms.example.com:4050'}}, {slot: 31, nodeID: {}, lockToState: true}]}"),
		},
		"legacy encryption, usual":  {"v1.13", "{machine: {systemDiskEncryption: {ephemeral: {keys: [{slot: 0, nodeID: {}}]}}}}"},
		"legacy encryption":         {"v1.13", "{machine: {systemDiskEncryption: {state: {provider: luks2, keys: [{slot: 0, nodeID: {}}]}}}}"},
		"mounts of a container":     {"v1.14", document("UserVolumeConfig", "name: data, volumeType: directory") + "\n---\n" + document("ContainerConfig", "name: c, "+agentImage+", mounts: [{userVolume: {name: data, destination: /data}}, {tmpfs: {destination: /tmp, size: 64MiB}}]")},
		"hostname in upper case":    {"v1.14", document("HostnameConfig", "hostname: Worker_1.Example.com, auto: 'off'")},
		"legacy hostname of a site": {"v1.13", "{machine: {network: {hostname: RACK1_NODE2}}}"},
		"hosts":                     {"v1.14", document("StaticHostConfig", "name: '2001:db8::5', hostnames: [a, b.example.com, _x.c]")},
		"legacy network":            {"v1.12", "{machine: {certSANs: ['*.example.com', 10.0.0.5, '2001:db8::5'], network: {nameservers: [10.0.0.1, '2001:db8::53'], searchDomains: [example.com], extraHostEntries: [{ip: 10.0.0.9, aliases: [nas]}]}, time: {servers: [ntp.example.com, 10.0.0.2, /dev/ptp0]}}}"},
		"probes and sinks":          {"v1.14", document("TCPProbeConfig", "name: a, endpoint: 'proxy.example.com:3128'") + "\n---\n" + document("EventSinkConfig", "endpoint: '[2001:db8::5]:8081'") + "\n---\n" + document("KmsgLogConfig", "name: b, url: 'udp://10.0.0.1:514/'")},
		"registries": {
			"v1.14", document("RegistryMirrorConfig", "name: '*', endpoints: [{url: 'https://m.example.com'}]") + "\n---\n" + document("RegistryMirrorConfig", "name: 'localhost:5000', endpoints: [{url: 'http://10.0.0.1:5000'}]") +
				"\n---\n" + document("RegistryTLSConfig", "name: '[2001:db8::5]:5000', insecureSkipVerify: true"),
		},
		"limits of a pod":       {"v1.14", document("KubeAPIServerConfig", "apiPort: 7443, resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {memory: 4Gi}}")},
		"settings of etcd":      {"v1.14", "{cluster: {etcd: {extraArgs: {quota-backend-bytes: '8589934592', heartbeat-interval: '300', election-timeout: '3000', auto-compaction-mode: periodic, auto-compaction-retention: 1h, listen-metrics-urls: 'http://0.0.0.0:2381'}}}}"},
		"scheduling":            {"v1.14", document("KubeSchedulerConfig", "config: {percentageOfNodesToScore: 50, profiles: [{schedulerName: default-scheduler}, {schedulerName: bin-packing}], leaderElection: {leaderElect: true, leaseDuration: 60s, renewDeadline: 40s}}")},
		"a proxy with IPVS":     {"v1.14", document("KubeProxyConfig", "config: {mode: ipvs, metricsBindAddress: '0.0.0.0:10249', nodePortAddresses: [primary], clusterCIDR: '10.244.0.0/16,fd00::/48'}")},
		"image of a mirror":     {"v1.14", document("KubeletConfig", "image: 'registry.example.com:5000/siderolabs/kubelet:v1.34.2'") + "\n---\n" + document("KubeAPIServerConfig", "image: 'registry.example.com/kube-apiserver:patched'")},
		"networks as they are":  {"v1.14", document("KubeNetworkConfig", "podSubnets: [10.244.0.0/16], nodeCIDRMaskSizeIPv4: 23")},
		"legacy disk and mount": {"v1.13", "{machine: {disks: [{device: /dev/disk/by-id/x, partitions: [{mountpoint: /var/mnt/a}]}], kubelet: {extraMounts: [{destination: /var/openebs, type: bind, source: /var/openebs, options: [bind, rshared, rw]}, {destination: /var/scratch, type: tmpfs, source: tmpfs, options: [size=1g]}]}}}"},
		"legacy bond in two parts": {
			"v1.13", "{machine: {network: {interfaces: [{interface: bond0, bond: {mode: 802.3ad, lacpRate: fast}}]}}}\n---\n" +
				"{machine: {network: {interfaces: [{interface: bond0, dhcp: true, bond: {interfaces: [eth0, eth1]}}]}}}",
		},
		"legacy interfaces":      {"v1.13", "{machine: {network: {interfaces: [{interface: bond0, mtu: 9000, bond: {mode: 802.3ad, deviceSelectors: [{driver: i40e}]}, vlans: [{vlanId: 5, addresses: [10.0.0.5/24], routes: [{gateway: 10.0.0.1}]}]}]}}}"},
		"choice of addresses":    {"v1.14", "{cluster: {etcd: {advertisedSubnets: [10.0.0.0/8, '!10.0.0.100/32'], listenSubnets: ['!0.0.0.0/0']}}}"},
		"flags of Talos":         {"v1.13", "{machine: {kubelet: {extraArgs: {rotate-certificates: 'true', protect-kernel-defaults: 'true', rotate-server-certificates: 'true'}}}}"},
		"old flags of etcd":      {"v1.12", "{cluster: {etcd: {extraArgs: {experimental-corrupt-check-time: 4h, experimental-enable-lease-checkpoint: 'true', feature-gates: 'StopGRPCServiceOnDefrag=true,AllBeta=false', watch-progress-notify-interval: 5m, listen-client-http-urls: 'http://127.0.0.1:2390', max-wals: '0'}}}}"},
		"flags of another etcd":  {"v1.13", "{cluster: {etcd: {image: 'registry.k8s.io/etcd:v3.5.21', extraArgs: {experimental-enable-lease-checkpoint: 'true', enable-v2: 'false'}}}}"},
		"older etcd":             {"v1.14", "{cluster: {etcd: {image: 'registry.k8s.io/etcd:v3.6.8', extraArgs: {experimental-memory-mlock: 'true'}}}}"},
		"etcd without a version": {"v1.14", "{cluster: {etcd: {image: 'registry.example.com:5000/etcd:patched', extraArgs: {flag-of-ours: 'true'}}}}"},
		"old names of ciphers":   {"v1.14", "{cluster: {etcd: {extraArgs: {cipher-suites: 'TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305,TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305'}}}}"},
		"origins of etcd":        {"v1.14", "{cluster: {etcd: {extraArgs: {cors: 'https://ui.example.com:443, http://10.0.0.1:8080', log-level: WARN}}}}"},
		"all origins of etcd":    {"v1.13", "{cluster: {etcd: {extraArgs: {cors: '*', log-level: Debug}}}}"},
		"many settings of etcd": {"v1.14", "{cluster: {etcd: {extraArgs: {metrics: extensive, log-level: warn, log-format: json, log-outputs: stderr, quota-backend-bytes: '0x200000000', max-learners: '2', enable-pprof: 'false', " +
			"cipher-suites: 'TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256', tls-min-version: TLS1.2, compact-hash-check-time: 1m, " +
			"auto-compaction-mode: revision, auto-compaction-retention: '1000', listen-metrics-urls: 'http://127.0.0.1:2381,http://[::1]:2381', backend-bbolt-freelist-type: map}}}}"},
		"mounts of what is there": {"v1.13", "{machine: {kubelet: {extraMounts: [{destination: /etc/x, type: bind, source: /etc/x, options: [bind, ro]}, {destination: /opt/x, type: bind, source: /opt/x, options: [bind, rw]}, {destination: /lib/modules, type: bind, source: /lib/modules, options: [bind, ro]}]}}}"},
		"legacy registries":       {"v1.13", "{machine: {registries: {mirrors: {'*': {endpoints: ['https://m.example.com/v2/all'], overridePath: true}, 'localhost:5000': {endpoints: ['http://10.0.0.1:5000']}}, config: {'10.0.0.1:5000': {tls: {insecureSkipVerify: true}}}}, logging: {destinations: [{endpoint: 'udp://127.0.0.1:12345/', format: json_lines}]}}}"},
		"small volumes":           {"v1.14", document("UserVolumeConfig", "name: a, provisioning: {diskSelector: {match: 'true'}, maxSize: 64MiB}") + "\n---\n" + document("UserVolumeConfig", "name: b, filesystem: {type: ext4}, provisioning: {diskSelector: {match: system_disk}, maxSize: 8MiB}") + "\n---\n" + document("VolumeConfig", "name: EPHEMERAL, provisioning: {maxSize: 50%}")},
		"devices":                 {"v1.14", document("PCIDriverRebindConfig", "name: '0000:04:00.0', targetDriver: vfio-pci") + "\n---\n" + document("WatchdogTimerConfig", "device: /dev/watchdog0, timeout: 1m")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if err := renderTalos(t, tc.contract, tc.document); err != nil {
				t.Error(err)
			}
		})
	}
}
