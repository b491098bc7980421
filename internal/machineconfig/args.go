// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// component is a program that Talos runs, with the flags of it that Talos sets itself. Machinery lets a config set them; Talos
// then refuses to start the program, or the flags put other certificates, keys and data in the place of the cluster's own.
type component struct {
	flags []string

	// legacyFlags are more of them, which machinery itself refuses in a document of their own.
	legacyFlags []string

	// legacy and modern give the extra arguments, from the legacy document and from one of their own.
	legacy        func(*v1alpha1.MachineConfig, *v1alpha1.ClusterConfig) meta.Args
	legacyPointer string
	modern        func(config.Document) (meta.Args, bool)
}

// kubeletProgram is the kubelet.
var kubeletProgram = component{
	flags:         []string{"bootstrap-kubeconfig", "cert-dir", "config", "container-runtime", "container-runtime-endpoint", "kubeconfig"},
	legacyPointer: "/machine/kubelet/extraArgs/",
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

var components = []component{
	kubeletProgram,
	{
		flags: []string{
			"client-ca-file", "encryption-provider-config", "etcd-cafile", "etcd-certfile", "etcd-keyfile", "etcd-servers",
			"kubelet-client-certificate", "kubelet-client-key", "proxy-client-cert-file", "proxy-client-key-file",
			"requestheader-client-ca-file", "service-account-key-file", "service-account-signing-key-file", "tls-cert-file", "tls-private-key-file",
		},
		legacyFlags:   []string{"authorization-config"},
		legacyPointer: "/cluster/apiServer/extraArgs/",
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
			"kubeconfig", "root-ca-file", "service-account-private-key-file",
		},
		legacyPointer: "/cluster/controllerManager/extraArgs/",
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
		flags:         []string{"authentication-kubeconfig", "authorization-kubeconfig", "config", "kubeconfig"},
		legacyPointer: "/cluster/scheduler/extraArgs/",
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
		flags: []string{
			"cert-file", "client-cert-auth", "data-dir", "key-file", "listen-client-urls", "listen-peer-urls", "name",
			"peer-cert-file", "peer-client-cert-auth", "peer-key-file", "peer-trusted-ca-file", "trusted-ca-file",
		},
		legacyPointer: "/cluster/etcd/extraArgs/",
		legacy: func(_ *v1alpha1.MachineConfig, cluster *v1alpha1.ClusterConfig) meta.Args {
			if cluster.EtcdConfig == nil {
				return nil
			}

			return cluster.EtcdConfig.EtcdExtraArgs
		},
		modern: func(config.Document) (meta.Args, bool) { return nil, false },
	},
}

var errOwnFlag = errors.New("set by Talos itself, which refuses another value for this flag: remove it")

// ownArgs finds flags that Talos sets itself.
func ownArgs(merged *merge.Config) []finding {
	var findings []finding

	documents := merged.Documents()
	machine, cluster := legacyOf(documents)

	for _, each := range components {
		args := each.legacy(machine, cluster)
		for _, flag := range slices.Concat(each.flags, each.legacyFlags) {
			if _, ok := args[flag]; ok {
				findings = append(findings, finding{document: merge.ID{Kind: merge.LegacyKind}, field: each.legacyPointer + flag, err: errOwnFlag})
			}
		}

		for _, document := range documents {
			args, _ := each.modern(document)
			for _, flag := range each.flags {
				if _, ok := args[flag]; ok {
					findings = append(findings, finding{document: merge.IDOf(document), field: "/extraArgs/" + flag, err: errOwnFlag})
				}
			}
		}
	}

	return findings
}

// labelFlag is the kubelet's flag for labels of its own Node.
const labelFlag = "node-labels"

// labelFlags finds labels that the kubelet refuses to start with. Labels that are written as such are refused to a worker alone.
func labelFlags(documents []config.Document) []finding {
	var findings []finding

	look := func(document merge.ID, pointer string, args meta.Args) {
		for _, value := range args.ToMap()[labelFlag] {
			for label := range strings.SplitSeq(value, ",") {
				key, _, _ := strings.Cut(label, "=")
				if !forbiddenToKubelet(key) {
					continue
				}

				findings = append(findings, finding{
					document: document, field: pointer + labelFlag,
					err: fmt.Errorf("the kubelet does not start with the label %s: put it on the Machine if Cluster API syncs it "+
						"(node-role.kubernetes.io, node-restriction.kubernetes.io), or use another prefix", key),
				})
			}
		}
	}

	machine, cluster := legacyOf(documents)
	look(merge.ID{Kind: merge.LegacyKind}, kubeletProgram.legacyPointer, kubeletProgram.legacy(machine, cluster))

	for _, document := range documents {
		if args, ok := kubeletProgram.modern(document); ok {
			look(merge.IDOf(document), "/extraArgs/", args)
		}
	}

	return findings
}
