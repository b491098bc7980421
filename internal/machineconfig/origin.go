// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// KindTalos is the source of what comes from no object: what Talos' generator writes for a config contract.
const KindTalos = "Talos"

// origin says which object a value of the base comes from.
type origin struct {
	kind, pointer string // of the document, and of the field or one above it; an empty kind is any
	source        func(*Input) Source
}

func fromCluster(path string) func(*Input) Source {
	return func(in *Input) Source {
		return Source{Layer: LayerBase, Kind: KindCluster, Name: in.Cluster.Name, Path: path}
	}
}

func fromMachine(path string) func(*Input) Source {
	return func(in *Input) Source {
		return Source{Layer: LayerBase, Kind: in.Machine.Kind, Name: in.Machine.Name, Path: path}
	}
}

func fromBundle(in *Input) Source {
	return Source{Layer: LayerBase, Kind: KindSecret, Name: secrets.BundleName(in.Cluster.Name)}
}

// origins are looked through in order; the first that fits counts.
var origins = []origin{
	{merge.LegacyKind, "/machine/type", fromMachine("metadata.labels")},
	{merge.LegacyKind, "/machine/kubelet/image", fromMachine("spec.version")},
	{merge.LegacyKind, "/cluster/apiServer/image", fromMachine("spec.version")},
	{merge.LegacyKind, "/cluster/controllerManager/image", fromMachine("spec.version")},
	{merge.LegacyKind, "/cluster/scheduler/image", fromMachine("spec.version")},
	{merge.LegacyKind, "/cluster/proxy/image", fromMachine("spec.version")},
	{merge.LegacyKind, "/cluster/clusterName", fromCluster("metadata.name")},
	{merge.LegacyKind, "/cluster/controlPlane/endpoint", fromCluster("spec.controlPlaneEndpoint")},
	{merge.LegacyKind, "/cluster/apiServer/certSANs", fromCluster("spec.controlPlaneEndpoint")},
	{merge.LegacyKind, "/cluster/network", fromCluster("spec.clusterNetwork")},
	{k8s.KubeletConfig, "/image", fromMachine("spec.version")},
	{k8s.KubeAPIServerConfig, "/image", fromMachine("spec.version")},
	{k8s.KubeAPIServerConfig, "/certExtraSANs", fromCluster("spec.controlPlaneEndpoint")},
	{k8s.KubeControllerManagerConfig, "/image", fromMachine("spec.version")},
	{k8s.KubeSchedulerConfig, "/image", fromMachine("spec.version")},
	{k8s.KubeProxyConfig, "/image", fromMachine("spec.version")},
	{k8s.KubeNodeConfig, "/labels", fromMachine("metadata.labels")},
	{k8s.KubeNodeConfig, "/taints", fromMachine("metadata.labels")},
	{k8s.KubeClusterConfig, "/clusterName", fromCluster("metadata.name")},
	{k8s.KubeClusterConfig, "/endpoint", fromCluster("spec.controlPlaneEndpoint")},
	{k8s.KubeNetworkConfig, "", fromCluster("spec.clusterNetwork")},
	{k8s.KubeServiceAccountConfig, "/issuer/url", fromCluster("spec.controlPlaneEndpoint")},
}

// originOf says where a value of the base comes from: an object, the secrets bundle, or Talos' own defaults for the contract.
func originOf(in *Input, id merge.ID, pointer string) Source {
	for _, each := range origins {
		if each.kind == id.Kind && isWithin(pointer, each.pointer) && !identifies(pointer) {
			return each.source(in)
		}
	}

	if fromSecrets(id, pointer) {
		return fromBundle(in)
	}

	return Source{Layer: LayerBase, Kind: KindTalos, Name: in.Contract.String(), Path: "defaults"}
}

// fromSecrets says whether a value belongs to the secrets bundle: what is protected, and not identity.
func fromSecrets(id merge.ID, pointer string) bool {
	if identifies(pointer) {
		return false
	}

	if id.Kind == merge.LegacyKind {
		for _, leaf := range protectedLeaves {
			if leaf.err == errClusterSecret && isWithin(pointer, leaf.pointer) { //nolint:errorlint // the table's own value
				return true
			}
		}

		return false
	}

	return protectedKinds[id.Kind] != nil
}

// identifies says whether a leaf only says which document it belongs to.
func identifies(pointer string) bool {
	switch pointer {
	case "/apiVersion", "/kind", "/name", "/version":
		return true
	default:
		return false
	}
}

func isWithinAny(pointer string, ancestors []string) bool {
	return slices.ContainsFunc(ancestors, func(ancestor string) bool { return isWithin(pointer, ancestor) })
}

func isWithin(pointer, ancestor string) bool {
	return pointer == ancestor || strings.HasPrefix(pointer, ancestor+"/")
}
