// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// settings are each setting of the system layer alone.
var settings = map[string]setting{
	"network.kubeProxy Disabled": {
		change: cluster(func(s *bootstrapv1.TalosClusterConfigSpec) { s.Network.KubeProxy = bootstrapv1.Disabled }),
		see: func(r rendered, o on) any {
			if o.modern() {
				enabled := first[k8s.KubeProxyConfigV1Alpha1](r).ProxyEnabled

				return enabled == nil || *enabled
			}

			proxy := r.legacy().ClusterConfig.ProxyConfig

			return proxy == nil || proxy.Disabled == nil || !*proxy.Disabled
		},
		want: fixed(false), effective: onControlPlanes,
	},
	"network.cni None": {
		change: cluster(func(s *bootstrapv1.TalosClusterConfigSpec) { s.Network.CNI.Type = bootstrapv1.CNINone }),
		see:    cni, want: fixed("none"), effective: whereManifestsAre,
	},
	"network.cni Manifests": {
		change: cluster(func(s *bootstrapv1.TalosClusterConfigSpec) {
			s.Network.CNI = bootstrapv1.CNISpec{Type: bootstrapv1.CNIManifests, URLs: []string{"https://a.example/1", "https://a.example/2"}}
		}),
		see: cni, want: fixed("custom [https://a.example/1 https://a.example/2]"), effective: whereManifestsAre,
	},
	"network.kubePrismPort": {
		change: cluster(func(s *bootstrapv1.TalosClusterConfigSpec) { s.Network.KubePrismPort = new(int32(7446)) }),
		see:    kubePrism, want: fixed("7446"), effective: everywhere,
	},
	"network.kubePrismPort 0": {
		change: cluster(func(s *bootstrapv1.TalosClusterConfigSpec) { s.Network.KubePrismPort = new(int32(0)) }),
		see:    kubePrism, want: fixed("off"), effective: everywhere,
	},
	"certSANs of the Talos API": {
		change: cluster(func(s *bootstrapv1.TalosClusterConfigSpec) { s.CertSANs = []string{"api.example.org"} }),
		see:    func(r rendered, _ on) any { return r.legacy().MachineConfig.MachineCertSANs },
		want:   fixed([]string{"api.example.org"}), effective: everywhere,
	},
	"certSANs of the Kubernetes API": {
		change: cluster(func(s *bootstrapv1.TalosClusterConfigSpec) { s.CertSANs = []string{"api.example.org"} }),
		see: func(r rendered, o on) any {
			if o.modern() {
				return slices.Contains(first[k8s.KubeAPIServerConfigV1Alpha1](r).PodCertExtraSANs, "api.example.org")
			}

			server := r.legacy().ClusterConfig.APIServerConfig

			return server != nil && slices.Contains(server.ExtraCertSANs, "api.example.org")
		},
		want: fixed(true), effective: onControlPlanes,
	},
	"allowSchedulingOnControlPlanes": {
		change: cluster(func(s *bootstrapv1.TalosClusterConfigSpec) { s.AllowSchedulingOnControlPlanes = bootstrapv1.Enabled }),
		see: func(r rendered, o on) any {
			if o.modern() {
				_, tainted := first[k8s.KubeNodeConfigV1Alpha1](r).TaintsConfig[controlPlaneTaint]

				return !tainted
			}

			allowed := r.legacy().ClusterConfig.AllowSchedulingOnControlPlanes

			return allowed != nil && *allowed
		},
		want: fixed(true), effective: onControlPlanes,
	},
	"talos.cloudProvider External": {
		change: cluster(func(s *bootstrapv1.TalosClusterConfigSpec) { s.Talos.CloudProvider = bootstrapv1.CloudProviderExternal }),
		see: func(r rendered, _ on) any {
			provider := r.legacy().ClusterConfig.ExternalCloudProviderConfig

			return provider != nil && *provider.ExternalEnabled
		},
		want: fixed(true), effective: everywhere,
	},
	"acceptedCAs of Talos": {
		change: accepted("talos.crt"),
		see:    func(r rendered, _ on) any { return len(r.legacy().MachineConfig.MachineAcceptedCAs) },
		want:   fixed(1), effective: everywhere,
	},
	"acceptedCAs of Kubernetes": {
		change: accepted("kubernetes.crt"),
		see: func(r rendered, o on) any {
			if o.modern() {
				return len(first[k8s.KubeAPIServerCAConfigV1Alpha1](r).APIAcceptedCAs)
			}

			return len(r.legacy().ClusterConfig.ClusterAcceptedCAs)
		},
		// A worker of the modern layout has the cluster's own there, beside the accepted one.
		want:      choose(func(o on) bool { return o.modern() && !o.controlPlane }, 2, 1),
		effective: everywhere,
	},
	"hostname.source MachineName": {
		change: change(func(in *machineconfig.Input) {
			in.TalosConfig.Spec.Hostname.Source = bootstrapv1.HostnameSourceMachineName
		}),
		see: hostname, want: choose(onControlPlanes, "cp1", "w1"), effective: everywhere,
	},
	"hostname.source InfrastructureMachineName": {
		change: change(func(in *machineconfig.Input) {
			in.TalosConfig.Spec.Hostname.Source = bootstrapv1.HostnameSourceInfrastructureMachineName
		}),
		see: hostname, want: choose(onControlPlanes, "cp1-infra", "w1-infra"), effective: everywhere,
	},
	"install.disk and wipe": {
		change: change(func(in *machineconfig.Input) {
			in.TalosConfig.Spec.Install = bootstrapv1.InstallSpec{Disk: "/dev/sdb", Image: "installer", Wipe: new(true)}
		}),
		see: install, want: ifModern(`disk.dev_path == "/dev/sdb" installer wipe:true`, "/dev/sdb installer wipe:true"), effective: everywhere,
	},
	"install.disk without wipe": {
		change: change(func(in *machineconfig.Input) {
			in.TalosConfig.Spec.Install = bootstrapv1.InstallSpec{Disk: "/dev/sdb", Image: "installer"}
		}),
		see: install, want: ifModern(`disk.dev_path == "/dev/sdb" installer wipe:false`, "/dev/sdb installer wipe:false"), effective: everywhere,
	},
	"taints of the Machine": {
		change: change(func(in *machineconfig.Input) {
			in.Machine.Taints = []clusterv1.MachineTaint{
				{Key: "gpu", Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationOnInitialization},
				{Key: "always", Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationAlways},
				{Key: "gpu", Value: "a100", Effect: corev1.TaintEffectNoExecute, Propagation: clusterv1.MachineTaintPropagationOnInitialization},
			}
		}),
		see: func(r rendered, o on) any {
			kubelet := r.legacy().MachineConfig.MachineKubelet.KubeletExtraConfig.Object
			if o.modern() {
				kubelet = first[k8s.KubeletConfigV1Alpha1](r).KubeletConfig.Object
			}

			return kubelet["registerWithTaints"]
		},
		want: fixed([]any{
			map[string]any{"key": "gpu", "value": "a100", "effect": "NoExecute"},
			map[string]any{"key": "gpu", "effect": "NoSchedule"},
		}),
		effective: onWorkers,
	},
}

func cluster(set func(*bootstrapv1.TalosClusterConfigSpec)) func(*testing.T, *machineconfig.Input) {
	return change(func(in *machineconfig.Input) { set(&clusterConfig(in).Spec) })
}

func accepted(key string) func(*testing.T, *machineconfig.Input) {
	return func(t *testing.T, in *machineconfig.Input) {
		t.Helper()

		clusterConfig(in).Spec.AcceptedCAsSecretRef = ref("roots")
		resolve(t, in, map[string][]byte{key: in.Bundle.Certs.Etcd.Crt})
	}
}

func cni(r rendered, o on) any {
	if !o.modern() {
		network := r.legacy().ClusterConfig.ClusterNetwork
		if network == nil || network.CNI == nil {
			return "flannel"
		}

		if len(network.CNI.CNIUrls) == 0 {
			return network.CNI.CNIName
		}

		return fmt.Sprintf("%s %v", network.CNI.CNIName, network.CNI.CNIUrls)
	}

	if len(documentsOf[*k8s.KubeFlannelCNIConfigV1Alpha1](r)) > 0 {
		return "flannel"
	}

	var urls []string
	for _, manifest := range documentsOf[*k8s.KubeExternalManifestConfigV1Alpha1](r) {
		urls = append(urls, manifest.URLSpec.String())
	}

	if len(urls) == 0 {
		return "none"
	}

	return fmt.Sprintf("custom %v", urls)
}

func kubePrism(r rendered, o on) any {
	if o.modern() {
		if documents := documentsOf[*k8s.KubePrismConfigV1Alpha1](r); len(documents) == 1 {
			return fmt.Sprint(documents[0].PortConfig)
		}

		return "off"
	}

	settings := r.legacy().MachineConfig.MachineFeatures.KubePrismSupport
	if settings == nil || settings.ServerEnabled == nil || !*settings.ServerEnabled {
		return "off"
	}

	return fmt.Sprint(settings.ServerPort)
}

func hostname(r rendered, _ on) any {
	documents := documentsOf[*network.HostnameConfigV1Alpha1](r)
	if len(documents) != 1 {
		return fmt.Sprintf("%d documents", len(documents))
	}

	return documents[0].ConfigHostname
}

func install(r rendered, o on) any {
	if !o.modern() {
		settings := r.legacy().MachineConfig.MachineInstall
		if settings == nil {
			return nil
		}

		return fmt.Sprintf("%s %s wipe:%t", settings.InstallDisk, settings.InstallImage, *settings.InstallWipe)
	}

	documents := documentsOf[*runtime.UnattendedInstallConfigV1Alpha1](r)
	if len(documents) == 0 {
		return nil
	}

	document := documents[0]

	return fmt.Sprintf("%s %s wipe:%t", document.ProvisioningSpec.DiskSelector.Match.String(), document.Installer.Image, *document.ProvisioningSpec.Wipe)
}
