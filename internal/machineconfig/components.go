// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
)

// kubeletProgram is the kubelet.
var kubeletProgram = component{
	flags: []string{
		"anonymous-auth", "authentication-token-webhook", "authorization-mode", "bootstrap-kubeconfig", "cert-dir", "cgroup-root", "client-ca-file",
		"config", "config-dir", "container-runtime", "container-runtime-endpoint", "hostname-override", "kubeconfig", "kubelet-cgroups", "pod-manifest-path", "port",
		kernelDefaultsFlag, "resolv-conf", "root-dir", "rotate-certificates", "system-cgroups",
	},
	usual: map[string]string{
		"anonymous-auth": "false", "authentication-token-webhook": "true", "authorization-mode": "Webhook", kernelDefaultsFlag: "true",
		"rotate-certificates": "true",
	},
	cluster:       map[string]string{"cluster-domain": serviceDomain, "pod-cidr": podNetworks},
	legacyPointer: "/machine/kubelet/extraArgs/",
	known:         kubeletKnown,
	legacy: func(machine *v1alpha1.MachineConfig, _ *v1alpha1.ClusterConfig) meta.Args {
		if machine.MachineKubelet == nil {
			return nil
		}

		return machine.MachineKubelet.KubeletExtraArgs
	},
	modern: func(document config.Document) (meta.Args, bool) {
		kubelet, ok := document.(*k8s.KubeletConfigV1Alpha1)
		if !ok {
			return nil, false
		}

		return kubelet.KubeletArgs, true
	},
}

// etcdProgram is etcd.
var etcdProgram = component{
	flags: []string{
		"auto-tls", "cert-file", "client-cert-auth", "client-cert-file", "client-key-file", "config-file", "data-dir",
		"discovery", "discovery-cacert", "discovery-cert", "discovery-dial-timeout", "discovery-endpoints", "discovery-fallback",
		"discovery-insecure-skip-tls-verify", "discovery-insecure-transport", "discovery-keepalive-time", "discovery-keepalive-timeout",
		"discovery-key", "discovery-password", "discovery-proxy", "discovery-request-timeout", "discovery-srv", "discovery-srv-name",
		"discovery-token", "discovery-user", "force-new-cluster", "initial-cluster",
		"initial-cluster-state", "initial-cluster-token", "key-file", "listen-client-urls", "listen-peer-urls", "name", "peer-auto-tls",
		"peer-cert-file", "peer-client-cert-auth", "peer-client-cert-file", "peer-client-key-file", "peer-key-file", "peer-trusted-ca-file",
		"trusted-ca-file", "version", "wal-dir",
	},
	open:          endangersEtcd,
	legacyPointer: "/cluster/etcd/extraArgs/",
	legacy: func(_ *v1alpha1.MachineConfig, cluster *v1alpha1.ClusterConfig) meta.Args {
		if cluster.EtcdConfig == nil {
			return nil
		}

		return cluster.EtcdConfig.EtcdExtraArgs
	},
	modern: func(config.Document) (meta.Args, bool) { return nil, false },
}

var components = []component{
	kubeletProgram,
	{
		flags: []string{
			"client-ca-file", "encryption-provider-config", "etcd-cafile", "etcd-certfile", "etcd-keyfile", "etcd-prefix", "etcd-servers",
			"etcd-servers-overrides",
			"kubelet-client-certificate", "kubelet-client-key", "proxy-client-cert-file", "proxy-client-key-file",
			"requestheader-client-ca-file", "secure-port", "service-account-key-file", "service-account-signing-key-file", "tls-cert-file", "tls-private-key-file",
		},
		legacyFlags:   []string{"authorization-config"},
		cluster:       map[string]string{"service-cluster-ip-range": serviceNetworks},
		open:          openServer,
		legacyPointer: "/cluster/apiServer/extraArgs/",
		known:         apiServerKnown,
		legacy: func(_ *v1alpha1.MachineConfig, cluster *v1alpha1.ClusterConfig) meta.Args {
			if cluster.APIServerConfig == nil {
				return nil
			}

			return cluster.APIServerConfig.ExtraArgsConfig
		},
		modern: func(document config.Document) (meta.Args, bool) {
			server, ok := document.(*k8s.KubeAPIServerConfigV1Alpha1)
			if !ok {
				return nil, false
			}

			return server.PodArgs, true
		},
	},
	{
		flags: []string{
			"authentication-kubeconfig", "authorization-kubeconfig", "cluster-signing-cert-file", "cluster-signing-key-file",
			"cluster-signing-kube-apiserver-client-cert-file", "cluster-signing-kube-apiserver-client-key-file",
			"cluster-signing-kubelet-client-cert-file", "cluster-signing-kubelet-client-key-file",
			"cluster-signing-kubelet-serving-cert-file", "cluster-signing-kubelet-serving-key-file",
			"cluster-signing-legacy-unknown-cert-file", "cluster-signing-legacy-unknown-key-file",
			"kubeconfig", "master", "root-ca-file", "service-account-private-key-file",
		},
		cluster:       map[string]string{"cluster-cidr": podNetworks, "service-cluster-ip-range": serviceNetworks},
		legacyPointer: "/cluster/controllerManager/extraArgs/",
		known:         controllerManagerKnown,
		legacy: func(_ *v1alpha1.MachineConfig, cluster *v1alpha1.ClusterConfig) meta.Args {
			if cluster.ControllerManagerConfig == nil {
				return nil
			}

			return cluster.ControllerManagerConfig.ExtraArgsConfig
		},
		modern: func(document config.Document) (meta.Args, bool) {
			manager, ok := document.(*k8s.KubeControllerManagerConfigV1Alpha1)
			if !ok {
				return nil, false
			}

			return manager.PodArgs, true
		},
	},
	{
		flags:         []string{"authentication-kubeconfig", "authorization-kubeconfig", "config", "kubeconfig", "master"},
		legacyPointer: "/cluster/scheduler/extraArgs/",
		known:         schedulerKnown,
		legacy: func(_ *v1alpha1.MachineConfig, cluster *v1alpha1.ClusterConfig) meta.Args {
			if cluster.SchedulerConfig == nil {
				return nil
			}

			return cluster.SchedulerConfig.ExtraArgsConfig
		},
		modern: func(document config.Document) (meta.Args, bool) {
			scheduler, ok := document.(*k8s.KubeSchedulerConfigV1Alpha1)
			if !ok {
				return nil, false
			}

			return scheduler.PodArgs, true
		},
	},
	{
		flags:         []string{"config", "kubeconfig", "master"},
		cluster:       map[string]string{"cluster-cidr": podNetworks},
		legacyPointer: "/cluster/proxy/extraArgs/",
		known:         proxyKnown,
		legacy: func(_ *v1alpha1.MachineConfig, cluster *v1alpha1.ClusterConfig) meta.Args {
			if cluster.ProxyConfig == nil {
				return nil
			}

			return cluster.ProxyConfig.ExtraArgsConfig
		},
		modern: func(document config.Document) (meta.Args, bool) {
			proxy, ok := document.(*k8s.KubeProxyConfigV1Alpha1)
			if !ok {
				return nil, false
			}

			return proxy.ProxyExtraArgs, true
		},
	},
	etcdProgram,
}
