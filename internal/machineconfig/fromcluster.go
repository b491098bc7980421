// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
	"github.com/maesh-dev/ichor/internal/version"
)

// fromCluster finds networks and versions that patches set in another way than the Cluster and the Machine say. Cluster API and its users go
// by what the objects say: a kubelet of another version would be upgraded by nobody, and a machine with other networks reaches no pod.
func (r *render) fromCluster(documents []config.Document) []finding {
	var findings []finding

	was := map[address]any{}
	for _, each := range networksIn(r.provider.Documents()) {
		was[each.address] = each.value
	}

	for _, each := range networksIn(documents) {
		if !reflect.DeepEqual(was[each.address], each.value) {
			findings = append(findings, finding{
				document: each.id, field: each.pointer, err: fromClusterError(each.from),
			})
		}
	}

	for _, each := range imagesIn(documents) {
		if err := r.otherVersion(each); err != nil {
			findings = append(findings, finding{document: each.id, field: each.pointer, err: err})
		}
	}

	return findings
}

func fromClusterError(field string) error {
	return fmt.Errorf("comes from %s of the Cluster: set it there, and leave it out here", field)
}

// networkSetting is what the Cluster says of its networks, as a document has it.
type networkSetting struct {
	address
	value any
	from  string
}

func networksIn(documents []config.Document) []networkSetting {
	var all []networkSetting

	if modern, ok := documentOf[*k8s.KubeNetworkConfigV1Alpha1](documents); ok {
		id := merge.IDOf(modern)
		all = append(all,
			networkSetting{address{id, "/podSubnets"}, modern.NetworkPodSubnets, podNetworks},
			networkSetting{address{id, "/serviceSubnets"}, modern.NetworkServiceSubnets, serviceNetworks},
			networkSetting{address{id, "/dnsDomain"}, modern.NetworkDNSDomain, serviceDomain},
		)
	}

	if _, cluster := legacyOf(documents); cluster.ClusterNetwork != nil {
		id := merge.ID{Kind: merge.LegacyKind}
		all = append(all,
			networkSetting{address{id, "/cluster/network/podSubnets"}, cluster.ClusterNetwork.PodSubnet, podNetworks},
			networkSetting{address{id, "/cluster/network/serviceSubnets"}, cluster.ClusterNetwork.ServiceSubnet, serviceNetworks},
			networkSetting{address{id, "/cluster/network/dnsDomain"}, cluster.ClusterNetwork.DNSDomain, serviceDomain},
		)
	}

	return all
}

// programImage is the image of a program. That of one of Kubernetes has the machine's version.
type programImage struct {
	address
	image      string
	kubernetes bool
}

func imagesIn(documents []config.Document) []programImage {
	all := legacyImages(documents)

	for _, document := range documents {
		id := merge.IDOf(document)

		switch typed := document.(type) {
		case *k8s.KubeletConfigV1Alpha1:
			all = append(all, programImage{address{id, "/image"}, typed.KubeletImage, true})
		case *k8s.KubeAPIServerConfigV1Alpha1:
			all = append(all, programImage{address{id, "/image"}, typed.PodImage, true})
		case *k8s.KubeControllerManagerConfigV1Alpha1:
			all = append(all, programImage{address{id, "/image"}, typed.PodImage, true})
		case *k8s.KubeSchedulerConfigV1Alpha1:
			all = append(all, programImage{address{id, "/image"}, typed.PodImage, true})
		case *k8s.KubeProxyConfigV1Alpha1:
			all = append(all, programImage{address{id, "/image"}, typed.ProxyImage, true})
		case *k8s.KubeCoreDNSConfigV1Alpha1:
			all = append(all, programImage{address{id, "/image"}, typed.PodImage, false})
		case *runtime.UnattendedInstallConfigV1Alpha1:
			all = append(all, programImage{address{id, "/installer/image"}, typed.Installer.Image, false})
		}
	}

	return all
}

func legacyImages(documents []config.Document) []programImage {
	id := merge.ID{Kind: merge.LegacyKind}
	machine, cluster := legacyOf(documents)

	var all []programImage

	add := func(pointer, image string, kubernetes bool) {
		all = append(all, programImage{address{id, pointer}, image, kubernetes})
	}

	if machine.MachineKubelet != nil {
		add("/machine/kubelet/image", machine.MachineKubelet.KubeletImage, true)
	}

	if machine.MachineInstall != nil {
		add("/machine/install/image", machine.MachineInstall.InstallImage, false)
	}

	if cluster.APIServerConfig != nil {
		add("/cluster/apiServer/image", cluster.APIServerConfig.ContainerImage, true)
	}

	if cluster.ControllerManagerConfig != nil {
		add("/cluster/controllerManager/image", cluster.ControllerManagerConfig.ContainerImage, true)
	}

	if cluster.SchedulerConfig != nil {
		add("/cluster/scheduler/image", cluster.SchedulerConfig.ContainerImage, true)
	}

	if cluster.ProxyConfig != nil {
		add("/cluster/proxy/image", cluster.ProxyConfig.ContainerImage, true)
	}

	if cluster.CoreDNSConfig != nil {
		add("/cluster/coreDNS/image", cluster.CoreDNSConfig.CoreDNSImage, false)
	}

	if cluster.EtcdConfig != nil {
		add("/cluster/etcd/image", cluster.EtcdConfig.ContainerImage, false)
	}

	return all
}

var errImage = errors.New("is no name of an image, and the program would not start: write it as registry.example.com/folder/name:tag")

// otherVersion tells an image that is none, or of another Kubernetes than the Machine's. A tag that is no version is its owner's business.
func (r *render) otherVersion(each programImage) error {
	if each.image == "" {
		return nil
	}

	if _, err := name.ParseReference(each.image); err != nil {
		return errImage
	}

	pinned, ok := each.pinned()
	if want, err := version.ParseKubernetes(r.in.Machine.KubernetesVersion); !ok || err != nil || pinned.String() == want.String() {
		return nil //nolint:nilerr // the machine's own version is checked before
	}

	return fmt.Errorf("is of Kubernetes %s, and the Machine says %s (spec.version): leave image out, or use the tag of that version",
		pinned, r.in.Machine.KubernetesVersion)
}

// pinned is the Kubernetes version in the tag of an image.
func (i programImage) pinned() (version.Kubernetes, bool) {
	reference, err := name.ParseReference(i.image)
	tag, tagged := reference.(name.Tag)

	if err != nil || !tagged || !i.kubernetes {
		return version.Kubernetes{}, false
	}

	pinned, err := version.ParseKubernetes(tag.TagStr())

	return pinned, err == nil
}

// Kubernetes is the version that an image in the patch has: the patch is for machines of that version alone.
func (p *Patch) Kubernetes() (version.Kubernetes, bool) {
	for _, document := range p.documents {
		if document == nil {
			continue
		}

		for _, part := range document.Documents() {
			if part.Document == nil {
				continue
			}

			for _, image := range imagesIn([]config.Document{part.Document}) {
				if pinned, ok := image.pinned(); ok {
					return pinned, true
				}
			}
		}
	}

	return version.Kubernetes{}, false
}
