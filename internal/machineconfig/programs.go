// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// podResources are what a pod that Talos makes asks for and may have.
type podResources struct {
	document         merge.ID
	pointer          string
	requests, limits meta.Unstructured

	// usual is what Talos asks for where the config does not say.
	usual map[string]string
}

// What Talos' static pods ask for, whatever the config says of limits.
func usual(cpu, memory string) map[string]string {
	return map[string]string{"cpu": cpu, "memory": memory}
}

func resourcesIn(documents []config.Document) []podResources {
	var all []podResources

	legacy := func(name string, resources *v1alpha1.ResourcesConfig, asks map[string]string) {
		if resources != nil {
			all = append(all, podResources{merge.ID{Kind: merge.LegacyKind}, "/cluster/" + name + "/resources", resources.Requests, resources.Limits, asks})
		}
	}

	server, manager, scheduler := usual("200m", "512Mi"), usual("50m", "256Mi"), usual("10m", "64Mi")

	_, cluster := legacyOf(documents)
	if cluster.APIServerConfig != nil {
		legacy("apiServer", cluster.APIServerConfig.ResourcesConfig, server)
	}

	if cluster.ControllerManagerConfig != nil {
		legacy("controllerManager", cluster.ControllerManagerConfig.ResourcesConfig, manager)
	}

	if cluster.SchedulerConfig != nil {
		legacy("scheduler", cluster.SchedulerConfig.ResourcesConfig, scheduler)
	}

	for _, document := range documents {
		modern := func(resources k8s.ResourcesConfig, asks map[string]string) {
			all = append(all, podResources{merge.IDOf(document), "/resources", resources.Requests, resources.Limits, asks})
		}

		switch typed := document.(type) {
		case *k8s.KubeAPIServerConfigV1Alpha1:
			modern(typed.PodResources, server)
		case *k8s.KubeControllerManagerConfigV1Alpha1:
			modern(typed.PodResources, manager)
		case *k8s.KubeSchedulerConfigV1Alpha1:
			modern(typed.PodResources, scheduler)
		case *k8s.KubeProxyConfigV1Alpha1:
			modern(typed.ProxyResources, nil)
		case *k8s.KubeFlannelCNIConfigV1Alpha1:
			modern(typed.FlannelResources, nil)
		}
	}

	return all
}

// badResources finds quantities that are none, and limits below what the pod asks for: the kubelet takes no such pod, and the machine would
// run without the program.
func badResources(documents []config.Document) []finding {
	var findings []finding

	for _, pod := range resourcesIn(documents) {
		at := func(field, name string, err error) {
			findings = append(findings, finding{document: pod.document, field: pod.pointer + "/" + field + "/" + name, err: err})
		}

		requests := quantities(pod.requests, func(name string, err error) { at("requests", name, err) })
		limits := quantities(pod.limits, func(name string, err error) { at("limits", name, err) })

		for _, name := range slices.Sorted(maps.Keys(limits)) {
			limit := limits[name]

			request, set := requests[name]
			if !set && pod.usual[name] != "" {
				request, set = resource.MustParse(pod.usual[name]), true
			}

			if set && request.Cmp(limit) > 0 {
				at("limits", name, fmt.Errorf("is %s, less than the %s that the pod asks for, and the kubelet would not start it: raise the limit, or lower requests", &limit, &request))
			}
		}
	}

	return findings
}

// quantities reads what can be read, and tells what cannot.
func quantities(from meta.Unstructured, wrong func(name string, err error)) map[string]resource.Quantity {
	read := map[string]resource.Quantity{}

	for _, name := range slices.Sorted(maps.Keys(from.Object)) {
		quantity, err := resource.ParseQuantity(strings.TrimSpace(fmt.Sprint(from.Object[name])))

		switch {
		case err != nil:
			wrong(name, errors.New("is no quantity, and the program would not start: write it as 500m or 512Mi"))
		case quantity.Sign() < 0:
			wrong(name, errors.New("is negative, and the program would not start"))
		default:
			read[name] = quantity
		}
	}

	return read
}

// portUses finds the local load balancer of the API server on a port that the machine uses otherwise: one of the two would not start.
func (r *render) portUses(documents []config.Document) []finding {
	used := map[int]string{constants.ApidPort: "the Talos API", constants.KubeletPort: "the kubelet"}

	if r.in.Machine.ControlPlane {
		used[constants.TrustdPort] = "Talos' trustd"
		used[constants.EtcdClientPort], used[constants.EtcdPeerPort] = "etcd", "etcd"
		used[serverPort(documents)] = "the API server"
	}

	var findings []finding

	look := func(id merge.ID, pointer string, port int) {
		if user, taken := used[port]; taken {
			findings = append(findings, finding{
				document: id, field: pointer, err: fmt.Errorf("%d is the port of %s on the machine: choose another, such as %d", port, user, constants.DefaultKubePrismPort),
			})
		}
	}

	machine, _ := legacyOf(documents)
	if features := machine.MachineFeatures; features != nil && features.KubePrismSupport != nil && features.KubePrismSupport.Enabled() {
		look(merge.ID{Kind: merge.LegacyKind}, "/machine/features/kubePrism/port", features.KubePrismSupport.ServerPort)
	}

	if prism, ok := documentOf[*k8s.KubePrismConfigV1Alpha1](documents); ok {
		look(merge.IDOf(prism), "/port", prism.PortConfig)
	}

	return findings
}

func serverPort(documents []config.Document) int {
	if server, ok := documentOf[*k8s.KubeAPIServerConfigV1Alpha1](documents); ok && server.PodAPIPort != nil {
		return *server.PodAPIPort
	}

	if _, cluster := legacyOf(documents); cluster.ControlPlane != nil && cluster.ControlPlane.LocalAPIServerPort != 0 {
		return cluster.ControlPlane.LocalAPIServerPort
	}

	return constants.DefaultControlPlanePort
}

// ownPods are the static pods that Talos makes itself.
var ownPods = []string{"kube-system/kube-apiserver", "kube-system/kube-controller-manager", "kube-system/kube-scheduler"}

// foreignPods finds static pods in the place of Talos' own: the kubelet runs one pod of a name.
func foreignPods(documents []config.Document) []finding {
	var findings []finding

	look := func(id merge.ID, pointer string, pod map[string]any) {
		if name := podName(pod); slices.Contains(ownPods, name) {
			findings = append(findings, finding{
				document: id, field: pointer, err: fmt.Errorf("has the name of Talos' own pod %s, and one of the two would not run: choose another name or namespace", name),
			})
		}
	}

	machine, _ := legacyOf(documents)
	for i, pod := range machine.MachinePods {
		look(merge.ID{Kind: merge.LegacyKind}, fmt.Sprintf("/machine/pods/%d", i), pod.Object)
	}

	for _, document := range documents {
		if static, ok := document.(*k8s.KubeStaticPodConfigV1Alpha1); ok {
			look(merge.IDOf(static), "/pod", static.PodSpec.Object)
		}
	}

	return findings
}
