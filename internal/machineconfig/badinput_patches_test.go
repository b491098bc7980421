// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import "strings"

const bad = "Cluster layer: TalosConfigPatch bad "

// badPatches are mistakes in patches.
var badPatches = map[string]badInput{
	"volume without a size": {
		documents: "  - {kind: UserVolumeConfig, userVolumeConfig: {name: data, provisioning: {diskSelector: {match: system_disk}}}}",
		at:        bad + "spec.documents[0] | UserVolumeConfig/data | /provisioning",
	},
	"volume selector with a typing mistake": {
		documents: "  - {kind: UserVolumeConfig, userVolumeConfig: {name: data, provisioning: {diskSelector: {match: 'disk.transprt == \"nvme\"'}, minSize: 1GiB}}}",
		at:        bad + "spec.documents[0] | UserVolumeConfig/data | /provisioning/diskSelector/match",
	},
	"second document is the bad one": {
		documents: "  - {kind: SysctlConfig, sysctlConfig: {params: {vm.swappiness: '1'}}}\n" +
			"  - {kind: UserVolumeConfig, userVolumeConfig: {name: data, provisioning: {diskSelector: {match: foo}, minSize: 1GiB}}}",
		at: bad + "spec.documents[1] | UserVolumeConfig/data | /provisioning/diskSelector/match",
	},
	"volume smaller than its minimum": {
		documents: "  - {kind: UserVolumeConfig, userVolumeConfig: {name: data, provisioning: {diskSelector: {match: system_disk}, minSize: 10GiB, maxSize: 1GiB}}}",
		at:        bad + "spec.documents[0] | UserVolumeConfig/data | /provisioning/minSize",
	},
	"whole disk with a size": {
		documents: "  - {kind: UserVolumeConfig, userVolumeConfig: {name: data, volumeType: disk, provisioning: {diskSelector: {match: '!system_disk'}, minSize: 10GiB}}}",
		at:        bad + "spec.documents[0] | UserVolumeConfig/data | /volumeType",
	},
	"directory with a file system": {
		documents: "  - {kind: UserVolumeConfig, userVolumeConfig: {name: data, volumeType: directory, filesystem: {type: xfs}}}",
		at:        bad + "spec.documents[0] | UserVolumeConfig/data | /filesystem",
	},
	"volume name that is too long": {
		documents: "  - {kind: UserVolumeConfig, userVolumeConfig: {name: " + strings.Repeat("a", 40) + ", provisioning: {diskSelector: {match: system_disk}, minSize: 1GiB}}}",
		at:        bad + "spec.documents[0] | UserVolumeConfig/" + strings.Repeat("a", 40) + " | /name",
	},
	"system volume that does not exist": {
		documents: "  - {kind: VolumeConfig, volumeConfig: {name: ROOT, provisioning: {maxSize: 10GiB}}}",
		at:        bad + "spec.documents[0] | VolumeConfig/ROOT | ",
	},
	"hostname with an empty part": {
		documents: "  - {kind: HostnameConfig, hostnameConfig: {hostname: 'worker..1', auto: 'off'}}",
		at:        bad + "spec.documents[0] | HostnameConfig | /hostname",
	},
	"line break in a kernel parameter": {
		documents: "  - {kind: SysctlConfig, sysctlConfig: {params: {\"vm.swappiness\\n\": '1'}}}",
		at:        bad + "spec.documents[0] | SysctlConfig | /params/vm.swappiness\n",
	},
	"static hostname and automatic one": {
		documents: "  - {kind: HostnameConfig, hostnameConfig: {hostname: w1, auto: stable}}",
		at:        bad + "spec.documents[0] | HostnameConfig | /auto",
	},
	"hostname in both layouts": {
		documents: "  - {kind: Config, config: {machine: {network: {hostname: w1}}}}\n  - {kind: HostnameConfig, hostnameConfig: {hostname: w2}}",
		at:        bad + "spec.documents[0] | Config | /machine/network/hostname",
	},
	"legacy kubelet beside the modern one": {
		documents: "  - {kind: Config, config: {machine: {kubelet: {image: 'registry.example.com/kubelet:v1.34.2'}}}}",
		at:        bad + "spec.documents[0] | Config | /machine/kubelet/image",
	},
	"legacy node labels beside the modern ones": {
		documents: "  - {kind: Config, config: {machine: {nodeLabels: {example.com/rack: r1}}}}",
		at:        bad + "spec.documents[0] | Config | /machine/nodeLabels",
	},
	"legacy install beside the modern one": {
		change:    change(withInstall),
		documents: "  - {kind: Config, config: {machine: {install: {disk: /dev/sdb}}}}",
		at:        bad + "spec.documents[0] | Config | /machine/install",
	},
	"install document without a disk": {
		documents: "  - {kind: UnattendedInstallConfig, unattendedInstallConfig: {installer: {image: 'registry.example.com/installer:v1'}}}",
		at:        bad + "spec.documents[0] | UnattendedInstallConfig | /provisioning/diskSelector/match",
	},
	"modern document for an older Talos": {
		contract:  "v1.13",
		documents: "  - {kind: KubeNodeConfig, kubeNodeConfig: {labels: {example.com/rack: r1}}}",
		at:        bad + "spec.documents[0] | KubeNodeConfig | ",
	},
	"role label on a worker": {
		documents: "  - {kind: KubeNodeConfig, kubeNodeConfig: {labels: {node-role.kubernetes.io/worker: ''}}}",
		at:        bad + "spec.documents[0] | KubeNodeConfig | /labels/node-role.kubernetes.io~1worker",
	},
	"restricted label on a worker, legacy layout": {
		contract:  "v1.13",
		documents: "  - {kind: Config, config: {machine: {nodeLabels: {node-restriction.kubernetes.io/tier: gold}}}}",
		at:        bad + "spec.documents[0] | Config | /machine/nodeLabels/node-restriction.kubernetes.io~1tier",
	},
	"label key with a space": {
		documents: "  - {kind: KubeNodeConfig, kubeNodeConfig: {labels: {'my label': x}}}",
		at:        bad + "spec.documents[0] | KubeNodeConfig | /labels/my label",
	},
	"label value that is too long": {
		documents: "  - {kind: KubeNodeConfig, kubeNodeConfig: {labels: {example.com/note: " + strings.Repeat("x", 64) + "}}}",
		at:        bad + "spec.documents[0] | KubeNodeConfig | /labels/example.com~1note",
	},
	"taint with an unknown effect": {
		documents: "  - {kind: KubeNodeConfig, kubeNodeConfig: {taints: {dedicated: 'storage:Never'}}}",
		at:        bad + "spec.documents[0] | KubeNodeConfig | /taints/dedicated",
	},
	"file without an operation": {
		documents: "  - {kind: Config, config: {machine: {files: [{content: x, path: /var/x, permissions: 420}]}}}",
		at:        bad + "spec.documents[0] | Config | /machine/files/0/op",
	},
	"file outside /var": {
		documents: "  - {kind: Config, config: {machine: {files: [{content: x, path: /opt/x, permissions: 420, op: create}]}}}",
		at:        bad + "spec.documents[0] | Config | /machine/files/0/path",
	},
	"kubelet flag that Talos owns": {
		contract:  "v1.13",
		documents: "  - {kind: Config, config: {machine: {kubelet: {extraArgs: {config: [/etc/kubelet.yaml]}}}}}",
		at:        bad + "spec.documents[0] | Config | /machine/kubelet/extraArgs/config",
	},
	"API server flag that replaces the trust root": {
		controlPlane: true, contract: "v1.13",
		documents: "  - {kind: Config, config: {cluster: {apiServer: {extraArgs: {client-ca-file: [/var/ca.crt]}}}}}",
		at:        bad + "spec.documents[0] | Config | /cluster/apiServer/extraArgs/client-ca-file",
	},
	"API server flag that leads to another etcd": {
		controlPlane: true,
		documents:    "  - {kind: KubeAPIServerConfig, kubeAPIServerConfig: {extraArgs: {etcd-servers: ['https://etcd.example.com:2379']}}}",
		at:           bad + "spec.documents[0] | KubeAPIServerConfig | /extraArgs/etcd-servers",
	},
	"authorization from a file of the machine": {
		controlPlane: true, contract: "v1.13",
		documents: "  - {kind: Config, config: {cluster: {apiServer: {extraArgs: {authorization-config: [/var/authorization.yaml]}}}}}",
		at:        bad + "spec.documents[0] | Config | /cluster/apiServer/extraArgs/authorization-config",
	},
	"OIDC by flags beside the document for it": {
		controlPlane: true,
		documents:    "  - {kind: KubeAPIServerConfig, kubeAPIServerConfig: {extraArgs: {oidc-issuer-url: ['https://login.example.com']}}}",
		at:           bad + "spec.documents[0] | KubeAPIServerConfig | /extraArgs/oidc-issuer-url",
	},
	"anonymous access by flag beside the document for it": {
		controlPlane: true,
		documents:    "  - {kind: KubeAPIServerConfig, kubeAPIServerConfig: {extraArgs: {anonymous-auth: ['true']}}}",
		at:           bad + "spec.documents[0] | KubeAPIServerConfig | /extraArgs/anonymous-auth",
	},
	"API server flags with underscores": {
		controlPlane: true, contract: "v1.13",
		documents: "  - {kind: Config, config: {cluster: {apiServer: {extraArgs: {client_ca_file: [/var/ca.crt], service_account_key_file: [/var/sa.pub], " +
			"authorization_mode: [AlwaysAllow], anonymous_auth: ['true']}}}}}",
		at: bad + "spec.documents[0] | Config | /cluster/apiServer/extraArgs/anonymous_auth",
	},
	"trust root of the API server with underscores": {
		controlPlane: true,
		documents:    "  - {kind: KubeAPIServerConfig, kubeAPIServerConfig: {extraArgs: {client_ca_file: [/var/ca.crt]}}}",
		at:           bad + "spec.documents[0] | KubeAPIServerConfig | /extraArgs/client_ca_file",
	},
	"role label by the kubelet's flag with an underscore": {
		documents: "  - {kind: KubeletConfig, kubeletConfig: {extraArgs: {node_labels: ['node-role.kubernetes.io/storage=']}}}",
		at:        bad + "spec.documents[0] | KubeletConfig | /extraArgs/node_labels",
	},
	"kubelet flag with dashes before it, legacy layout": {
		contract:  "v1.13",
		documents: "  - {kind: Config, config: {machine: {kubelet: {extraArgs: {--config: [/etc/kubelet.yaml]}}}}}",
		at:        bad + "spec.documents[0] | Config | /machine/kubelet/extraArgs/--config",
	},
	"controller manager flag in upper case": {
		controlPlane: true,
		documents:    "  - {kind: KubeControllerManagerConfig, kubeControllerManagerConfig: {extraArgs: {Root_CA_file: [/var/ca.crt]}}}",
		at:           bad + "spec.documents[0] | KubeControllerManagerConfig | /extraArgs/Root_CA_file",
	},
	"scheduler flag with an underscore": {
		controlPlane: true, contract: "v1.13",
		documents: "  - {kind: Config, config: {cluster: {scheduler: {extraArgs: {authorization_kubeconfig: [/var/k]}}}}}",
		at:        bad + "spec.documents[0] | Config | /cluster/scheduler/extraArgs/authorization_kubeconfig",
	},
	"proxy flag that Talos owns": {
		controlPlane: true,
		documents:    "  - {kind: KubeProxyConfig, kubeProxyConfig: {extraArgs: {config: [/var/proxy.yaml]}}}",
		at:           bad + "spec.documents[0] | KubeProxyConfig | /extraArgs/config",
	},
	"proxy flag with an underscore, legacy layout": {
		controlPlane: true, contract: "v1.13",
		documents: "  - {kind: Config, config: {cluster: {proxy: {extraArgs: {bind_address: [0.0.0.0]}}}}}",
		at:        bad + "spec.documents[0] | Config | /cluster/proxy/extraArgs/bind_address",
	},
	"etcd flag with a dash before it": {
		controlPlane: true,
		documents:    "  - {kind: Config, config: {cluster: {etcd: {extraArgs: {-data-dir: [/var/other]}}}}}",
		at:           bad + "spec.documents[0] | Config | /cluster/etcd/extraArgs/-data-dir",
	},
	"value in the name of a flag": {
		controlPlane: true, contract: "v1.13",
		documents: "  - {kind: Config, config: {cluster: {apiServer: {extraArgs: {'client-ca-file=/var/ca.crt': ['']}}}}}",
		at:        bad + "spec.documents[0] | Config | /cluster/apiServer/extraArgs/client-ca-file=~1var~1ca.crt",
	},
	"name of a flag that is none": {
		controlPlane: true, contract: "v1.13",
		documents: "  - {kind: Config, config: {cluster: {apiServer: {extraArgs: {'v --x': ['1']}}}}}",
		at:        bad + "spec.documents[0] | Config | /cluster/apiServer/extraArgs/v --x",
	},
	"role label by the kubelet's flag": {
		documents: "  - {kind: KubeletConfig, kubeletConfig: {extraArgs: {node-labels: ['example.com/rack=r1,node-role.kubernetes.io/storage=']}}}",
		at:        bad + "spec.documents[0] | KubeletConfig | /extraArgs/node-labels",
	},
	"role label by the kubelet's flag, legacy layout": {
		contract: "v1.13", controlPlane: true,
		documents: "  - {kind: Config, config: {machine: {kubelet: {extraArgs: {node-labels: [node-role.kubernetes.io/infra=]}}}}}",
		at:        bad + "spec.documents[0] | Config | /machine/kubelet/extraArgs/node-labels",
	},
	"mount over a user volume": {
		contract: "v1.13",
		documents: "  - {kind: UserVolumeConfig, userVolumeConfig: {name: data, provisioning: {diskSelector: {match: '!system_disk'}, minSize: 10GiB}}}\n" +
			"  - {kind: Config, config: {machine: {kubelet: {extraMounts: [{destination: /var/mnt/data, source: /var/data, type: bind, options: [bind, rshared, rw]}]}}}}",
		at: bad + "spec.documents[1] | Config | /machine/kubelet/extraMounts/0",
	},
	"EPHEMERAL's mount beside a user volume's": {
		contract: "v1.13",
		documents: "  - {kind: UserVolumeConfig, userVolumeConfig: {name: longhorn, provisioning: {diskSelector: {match: '!system_disk'}, minSize: 10GiB}}}\n" +
			"  - {kind: Config, config: {machine: {kubelet: {extraMounts: [{destination: /var/mnt/longhorn, source: /var/mnt/longhorn, type: bind, options: [bind, rshared, rw]}, " +
			"{destination: /var/lib/longhorn, source: /var/lib/longhorn/, type: bind, options: [bind, rshared, rw]}]}}}}",
		at: bad + "spec.documents[1] | Config | /machine/kubelet/extraMounts/0",
	},
	"inline manifest that is no YAML": {
		controlPlane: true, contract: "v1.13",
		documents: "  - {kind: Config, config: {cluster: {inlineManifests: [{name: cni, contents: \"kind: {\\n  token: " + registryPassword + "\"}]}}}",
		at:        bad + "spec.documents[0] | Config | /cluster/inlineManifests/0/contents",
	},
	"inline manifest without a kind": {
		controlPlane: true, contract: "v1.13",
		documents: "  - {kind: Config, config: {cluster: {inlineManifests: [{name: cni, contents: \"apiVersion: v1\\nkind: Namespace\\n---\\napiVersion: v1\\nmetadata: {name: x}\"}]}}}",
		at:        bad + "spec.documents[0] | Config | /cluster/inlineManifests/0/contents",
	},
	"inline manifests of one name": {
		controlPlane: true, contract: "v1.13",
		documents: "  - {kind: Config, config: {cluster: {inlineManifests: [{name: cni, contents: ''}, {name: cni, contents: ''}]}}}",
		at:        bad + "spec.documents[0] | Config | /cluster/inlineManifests/1/name",
	},
	"Longhorn label that Longhorn ignores": {
		documents: "  - {kind: KubeNodeConfig, kubeNodeConfig: {labels: {node.longhorn.io/create-default-disk: 'false'}}}",
		at:        bad + "spec.documents[0] | KubeNodeConfig | /labels/node.longhorn.io~1create-default-disk",
	},
	"etcd settings on a worker": {
		documents: "  - {kind: Config, config: {cluster: {etcd: {advertisedSubnets: [10.0.0.0/8]}}}}",
		at:        bad + "spec.documents[0] | Config | /cluster/etcd",
	},
	"deletion of an authorizer": {
		controlPlane: true,
		deletions:    "  - {kind: KubeAuthorizerConfig, name: node}",
		at:           bad + "spec.deletions[0] | KubeAuthorizerConfig/node | ",
	},
	"Longhorn disks that are no list": {
		documents: "  - {kind: KubeNodeConfig, kubeNodeConfig: {annotations: {node.longhorn.io/default-disks-config: '{\"path\":\"/var/mnt/a\"}'}}}",
		at:        bad + "spec.documents[0] | KubeNodeConfig | /annotations/node.longhorn.io~1default-disks-config",
	},
	"memory rule that is no expression": {
		documents: "  - {kind: OOMConfig, oomConfig: {triggerExpression: 'memory_full >'}}",
		at:        bad + "spec.documents[0] | OOMConfig | /triggerExpression",
	},
	"name server that is a name": {
		documents: "  - {kind: ResolverConfig, resolverConfig: {nameservers: [{address: dns.example.com}]}}",
		at:        bad + "spec.documents[0] | ResolverConfig | /nameservers/0/address",
	},
	"firewall rule with ports in the wrong order": {
		documents: "  - {kind: NetworkRuleConfig, networkRuleConfig: {name: r, portSelector: {ports: [2000-1000], protocol: tcp}, ingress: [{subnet: 10.0.0.0/8}]}}",
		at:        bad + "spec.documents[0] | NetworkRuleConfig/r | /portSelector/ports/0",
	},
	"firewall rule with an address for a subnet": {
		documents: "  - {kind: NetworkRuleConfig, networkRuleConfig: {name: r, portSelector: {ports: [80], protocol: tcp}, ingress: [{subnet: 10.0.0.1/99}]}}",
		at:        bad + "spec.documents[0] | NetworkRuleConfig/r | /ingress/0/subnet",
	},
	"firewall rule without a port": {
		documents: "  - {kind: NetworkRuleConfig, networkRuleConfig: {name: r, ingress: [{subnet: 10.0.0.0/8}]}}",
		at:        bad + "spec.documents[0] | NetworkRuleConfig/r | /portSelector/protocol",
	},
	"mirror without a scheme in a patch": {
		documents: "  - {kind: RegistryMirrorConfig, registryMirrorConfig: {name: docker.io, endpoints: [{url: 'mirror.example.com'}]}}",
		at:        bad + "spec.documents[0] | RegistryMirrorConfig/docker.io | /endpoints/0/url",
	},
	"time from two sources": {
		documents: "  - {kind: TimeSyncConfig, timeSyncConfig: {ntp: {servers: [ntp.example.com]}, ptp: {devices: [/dev/ptp0]}}}",
		at:        bad + "spec.documents[0] | TimeSyncConfig | ",
	},
	"KubePrism on no port": {
		documents: "  - {kind: KubePrismConfig, kubePrismConfig: {port: 0}}",
		at:        bad + "spec.documents[0] | KubePrismConfig | /port",
	},
	"deletion of the cluster's identity": {
		deletions: "  - {kind: KubeClusterConfig}",
		at:        bad + "spec.deletions[0] | KubeClusterConfig | ",
	},
	"deletion of the machine's token": {
		deletions: "  - {kind: Config, path: /machine/token}",
		at:        bad + "spec.deletions[0] | Config | /machine/token",
	},
	"deletion of the certificate authority": {
		contract: "v1.13", controlPlane: true,
		deletions: "  - {kind: Config, path: /cluster/ca}",
		at:        bad + "spec.deletions[0] | Config | /cluster/ca",
	},
	"deletion of the API server's authentication": {
		controlPlane: true,
		deletions:    "  - {kind: KubeAuthenticationConfig}",
		at:           bad + "spec.deletions[0] | KubeAuthenticationConfig | ",
	},
	"deletion of the whole legacy document": {
		deletions: "  - {kind: Config}",
		at:        bad + "spec.deletions[0] | Config | ",
	},
	"deletion by a path that is none": {
		deletions: "  - {kind: Config, path: /machine/tokn}",
		at:        bad + "spec.deletions[0] | Config | /machine/tokn",
	},
}
