// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/constants"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// Documents of the 1.14 format that settings of a cluster change or remove.
var (
	kubeFlannelCNIConfig = merge.ID{Kind: k8s.KubeFlannelCNIConfig}
	kubePrismConfig      = merge.ID{Kind: k8s.KubePrismConfig}
	kubeNodeConfig       = merge.ID{Kind: k8s.KubeNodeConfig}
)

// network makes what TalosClusterConfig says of the cluster's network, API names and scheduling.
func (s *system) network(config *bootstrapv1.TalosClusterConfig) error {
	spec := &config.Spec

	if err := s.cni(config); err != nil {
		return err
	}

	if spec.Network.KubeProxy == bootstrapv1.Disabled {
		s.disableKubeProxy(s.clusterConfigSource(config, "spec.network.kubeProxy"))
	}

	if port := spec.Network.KubePrismPort; port != nil {
		s.kubePrism(s.clusterConfigSource(config, "spec.network.kubePrismPort"), int(*port))
	}

	if len(spec.CertSANs) > 0 {
		s.certSANs(s.clusterConfigSource(config, "spec.certSANs"), spec.CertSANs)
	}

	if spec.AllowSchedulingOnControlPlanes == bootstrapv1.Enabled && s.in.Machine.ControlPlane {
		s.allowScheduling(s.clusterConfigSource(config, "spec.allowSchedulingOnControlPlanes"))
	}

	return nil
}

func (s *system) cni(config *bootstrapv1.TalosClusterConfig) error {
	cni := config.Spec.Network.CNI
	source := s.clusterConfigSource(config, "spec.network.cni")

	if cni.Type == "" || cni.Type == bootstrapv1.CNIFlannel {
		return nil
	}

	var faults []error

	urls := make([]*url.URL, len(cni.URLs))

	for i, each := range cni.URLs {
		parsed, err := url.Parse(each)
		if err != nil || parsed.Host == "" || parsed.User != nil || merge.HasCredentialQuery(each) {
			// The parser's own words quote the URL, which may carry a password.
			faults = append(faults, &Error{
				Reason: ReasonRenderFailed, Source: source, Field: fmt.Sprintf("urls[%d]", i),
				Err: errors.New("not a URL of the form https://host/path without credentials"),
			})
		}

		urls[i] = parsed
	}

	if err := errors.Join(faults...); err != nil {
		return err
	}

	if s.modernKubernetes() {
		s.modernCNI(source, urls)

		return nil
	}

	s.put(source, legacy(func(_ *v1alpha1.MachineConfig, cluster *v1alpha1.ClusterConfig) {
		settings := &v1alpha1.CNIConfig{CNIName: constants.NoneCNI}
		if cni.Type == bootstrapv1.CNIManifests {
			settings.CNIName, settings.CNIUrls = constants.CustomCNI, cni.URLs
		}

		cluster.ClusterNetwork = &v1alpha1.ClusterNetworkConfig{CNI: settings}
	}))

	return nil
}

// modernCNI takes Flannel out of control planes, which alone deploy manifests, and puts the manifests in.
func (s *system) modernCNI(source Source, urls []*url.URL) {
	if !s.in.Machine.ControlPlane {
		return
	}

	s.remove(source, kubeFlannelCNIConfig, "")

	for i, each := range urls {
		document := k8s.NewKubeExternalManifestConfigV1Alpha1()
		document.MetaName = fmt.Sprintf("cni-%d", i)
		document.URLSpec = meta.URL{URL: each}
		s.put(source, document)
	}
}

func (s *system) disableKubeProxy(source Source) {
	if !s.in.Machine.ControlPlane {
		return
	}

	if s.modernKubernetes() {
		document := k8s.NewKubeProxyConfigV1Alpha1()
		document.ProxyEnabled = new(false)
		s.put(source, document)

		return
	}

	s.put(source, legacy(func(_ *v1alpha1.MachineConfig, cluster *v1alpha1.ClusterConfig) {
		cluster.ProxyConfig = &v1alpha1.ProxyConfig{Disabled: new(true)}
	}))
}

func (s *system) kubePrism(source Source, port int) {
	switch {
	case s.modernKubernetes() && port == 0:
		s.remove(source, kubePrismConfig, "")
	case s.modernKubernetes():
		document := k8s.NewKubePrismConfigV1Alpha1()
		document.PortConfig = port
		s.put(source, document)
	default:
		s.put(source, legacy(func(machine *v1alpha1.MachineConfig, _ *v1alpha1.ClusterConfig) {
			settings := &v1alpha1.KubePrism{ServerEnabled: new(port != 0), ServerPort: port}
			machine.MachineFeatures = &v1alpha1.FeaturesConfig{KubePrismSupport: settings}
		}))
	}
}

// certSANs go into the Talos API's certificate on every machine, and into the Kubernetes API's on control planes.
func (s *system) certSANs(source Source, names []string) {
	s.put(source, legacy(func(machine *v1alpha1.MachineConfig, cluster *v1alpha1.ClusterConfig) {
		machine.MachineCertSANs = names

		if s.in.Machine.ControlPlane && !s.modernKubernetes() {
			cluster.APIServerConfig = &v1alpha1.APIServerConfig{ExtraCertSANs: names}
		}
	}))

	if s.in.Machine.ControlPlane && s.modernKubernetes() {
		document := k8s.NewKubeAPIServerConfigV1Alpha1()
		document.PodCertExtraSANs = names
		s.put(source, document)
	}
}

func (s *system) allowScheduling(source Source) {
	if s.modernKubernetes() {
		s.remove(source, kubeNodeConfig, "/taints/"+merge.EscapePointer(constants.LabelNodeRoleControlPlane))

		return
	}

	s.put(source, legacy(func(_ *v1alpha1.MachineConfig, cluster *v1alpha1.ClusterConfig) {
		cluster.AllowSchedulingOnControlPlanes = new(true)
	}))
}
