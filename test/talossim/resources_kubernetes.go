// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
)

// component is a static pod of a control-plane node, as its configuration wants it.
type component struct {
	id    string
	image string
	args  map[string][]string
	// config is the resource that says so, and version its version, which the pod carries.
	config  resource.Resource
	version string
}

// components are the static pods that a control-plane node is to run.
func (c *nodeConfig) components(n *Node) []component {
	if !c.controlPlane() {
		return nil
	}
	var all []component
	if server := c.K8sAPIServerConfig(); server != nil {
		spec := k8s.NewAPIServerConfig(k8s.APIServerConfigID)
		spec.TypedSpec().Image, spec.TypedSpec().ExtraArgs = server.Image(), argValues(server.ExtraArgs())
		spec.TypedSpec().LocalPort, spec.TypedSpec().AdvertisedAddress = server.APIPort(), n.address
		spec.TypedSpec().ServiceCIDRs = prefixes(c.K8sNetworkConfig().ServiceCIDRs())
		spec.TypedSpec().EtcdServers = []string{clientURL("127.0.0.1")}
		spec.TypedSpec().EnvironmentVariables = server.Env()
		all = append(all, component{id: k8s.APIServerID, image: server.Image(), args: server.ExtraArgs(), config: spec})
	}
	if manager := c.K8sControllerManagerConfig(); manager != nil && manager.Enabled() {
		spec := k8s.NewControllerManagerConfig(k8s.ControllerManagerConfigID)
		spec.TypedSpec().Enabled, spec.TypedSpec().Image = true, manager.Image()
		spec.TypedSpec().ExtraArgs = argValues(manager.ExtraArgs())
		spec.TypedSpec().PodCIDRs = prefixes(c.K8sNetworkConfig().PodCIDRs())
		spec.TypedSpec().ServiceCIDRs = prefixes(c.K8sNetworkConfig().ServiceCIDRs())
		spec.TypedSpec().EnvironmentVariables = manager.Env()
		all = append(all, component{id: k8s.ControllerManagerID, image: manager.Image(), args: manager.ExtraArgs(), config: spec})
	}
	if scheduler := c.K8sSchedulerConfig(); scheduler != nil && scheduler.Enabled() {
		spec := k8s.NewSchedulerConfig(k8s.SchedulerConfigID)
		spec.TypedSpec().Enabled, spec.TypedSpec().Image = true, scheduler.Image()
		spec.TypedSpec().ExtraArgs, spec.TypedSpec().Config = argValues(scheduler.ExtraArgs()), scheduler.Config()
		spec.TypedSpec().EnvironmentVariables = scheduler.Env()
		all = append(all, component{id: k8s.SchedulerID, image: scheduler.Image(), args: scheduler.ExtraArgs(), config: spec})
	}
	return all
}

func argValues(args map[string][]string) map[string]k8s.ArgValues {
	values := map[string]k8s.ArgValues{}
	for name, list := range args {
		values[name] = k8s.ArgValues{Values: list}
	}
	return values
}

func prefixes(list []netip.Prefix) []string {
	var all []string
	for _, prefix := range list {
		all = append(all, prefix.String())
	}
	return all
}

// configResources are the components' configurations. From 1.14 on there are two of each: what the machine configuration
// says, and what comes of it with Talos' own settings, whose version the pods carry. Source: Talos,
// internal/app/machined/pkg/controllers/k8s, ControlPlaneAPIServerFinalController and ControlPlaneStaticPodController.
func (b *boot) configResources(c *nodeConfig) []resource.Resource {
	var all []resource.Resource
	for _, one := range c.components(b.node) {
		all = append(all, one.config)
		if !b.image.version.Contract().AtLeast(14) {
			continue
		}
		args := flags(one.args, nil)
		switch spec := one.config.(type) {
		case *k8s.APIServerConfig:
			final := k8s.NewAPIServerConfig(k8s.FinalAPIServerConfigID)
			*final.TypedSpec() = *spec.TypedSpec()
			final.TypedSpec().ExtraArgs, final.TypedSpec().Args = nil, args
			all = append(all, final)
		case *k8s.ControllerManagerConfig:
			final := k8s.NewControllerManagerConfig(k8s.FinalControllerManagerConfigID)
			*final.TypedSpec() = *spec.TypedSpec()
			final.TypedSpec().ExtraArgs, final.TypedSpec().Args = nil, args
			all = append(all, final)
		case *k8s.SchedulerConfig:
			final := k8s.NewSchedulerConfig(k8s.FinalSchedulerConfigID)
			*final.TypedSpec() = *spec.TypedSpec()
			final.TypedSpec().ExtraArgs, final.TypedSpec().Args = nil, args
			all = append(all, final)
		}
	}
	return all
}

// wantedPods are the components with the versions that the state has given their configurations.
func (b *boot) wantedPods(c *nodeConfig) []component {
	all := c.components(b.node)
	for i, one := range all {
		id := one.id
		if b.image.version.Contract().AtLeast(14) {
			id = k8s.FinalPrefix + id
		}
		metadata := one.config.Metadata()
		found, err := b.state.Get(b.ctx, resource.NewMetadata(metadata.Namespace(), metadata.Type(), id, resource.VersionUndefined))
		if err == nil {
			all[i].version = found.Metadata().Version().String()
		}
	}
	return all
}

// pod is a static pod that runs.
type pod struct {
	component

	ready bool
}

// podResources show the static pods: what is wanted, and what runs. Without a real API server a pod runs what is wanted as
// soon as there is an etcd for it.
func (b *boot) podResources(c *nodeConfig) []resource.Resource {
	if !c.controlPlane() {
		return nil
	}
	wanted := b.wantedPods(c)
	var all []resource.Resource
	for _, one := range wanted {
		static := k8s.NewStaticPod(k8s.NamespaceName, one.id)
		static.TypedSpec().Pod = map[string]any{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{
				"name": one.id, "namespace": systemNamespace, "labels": stringMap(one.labels()), "annotations": stringMap(one.annotations()),
			},
			"spec": map[string]any{
				"hostNetwork": true, "priorityClassName": "system-cluster-critical",
				"containers": []any{map[string]any{"name": one.id, "image": one.image}},
			},
		}
		all = append(all, static)
	}
	if !b.node.world.kubernetes() {
		member := b.node.member()
		running := map[string]pod{}
		for _, one := range wanted {
			if member != nil && member.running() {
				running[one.id] = pod{component: one, ready: true}
			}
		}
		b.mu.Lock()
		b.pods = running
		b.mu.Unlock()
	}
	pods := b.runningPods()
	for _, id := range slices.Sorted(maps.Keys(pods)) {
		status := k8s.NewStaticPodStatus(k8s.NamespaceName, systemNamespace+"/"+id+"-"+c.nodename(b.node))
		status.TypedSpec().PodStatus = map[string]any{
			"phase": "Running", "hostIP": b.node.address, "podIP": b.node.address,
			"conditions": []any{
				map[string]any{"type": "Initialized", "status": "True"},
				map[string]any{"type": "Ready", "status": boolWord(pods[id].ready)},
			},
			"containerStatuses": []any{map[string]any{"name": id, "image": pods[id].image, "ready": pods[id].ready}},
		}
		all = append(all, status)
	}
	return all
}

const systemNamespace = "kube-system"

func (c component) labels() map[string]string {
	return map[string]string{"tier": "control-plane", "k8s-app": c.id, "component": c.id}
}

func (c component) annotations() map[string]string {
	return map[string]string{constants.AnnotationStaticPodConfigVersion: c.version, constants.AnnotationStaticPodSecretsVersion: "1"}
}

func stringMap(from map[string]string) map[string]any {
	to := map[string]any{}
	for key, value := range from {
		to[key] = value
	}
	return to
}

func boolWord(value bool) string {
	if value {
		return "True"
	}
	return "False"
}

// runningPods are the static pods that run, by component.
func (b *boot) runningPods() map[string]pod {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.pods)
}

// setPod notes what a static pod has become.
func (b *boot) setPod(p pod) {
	b.mu.Lock()
	if b.pods == nil {
		b.pods = map[string]pod{}
	}
	b.pods[p.id] = p
	b.mu.Unlock()
	b.publish()
}

// dropPod forgets a static pod that the configuration wants no more.
func (b *boot) dropPod(id string) {
	b.mu.Lock()
	delete(b.pods, id)
	b.mu.Unlock()
	b.publish()
}

// nodeResources are what the node shows of its kubelet and its Node.
func (b *boot) nodeResources(c *nodeConfig) []resource.Resource {
	n := b.node
	nodename := k8s.NewNodename(k8s.NamespaceName, k8s.NodenameID)
	nodename.TypedSpec().Nodename = c.nodename(n)
	address := k8s.NewNodeIP(k8s.NamespaceName, k8s.KubeletID)
	if ip, err := netip.ParseAddr(n.address); err == nil {
		address.TypedSpec().Addresses = []netip.Addr{ip}
	}
	all := []resource.Resource{nodename, address}
	kubelet := c.K8sKubeletConfig()
	if kubelet == nil {
		return all
	}
	spec := k8s.NewKubeletSpec(k8s.NamespaceName, k8s.KubeletID)
	spec.TypedSpec().Image, spec.TypedSpec().ExpectedNodename = kubelet.Image(), c.nodename(n)
	spec.TypedSpec().Args, spec.TypedSpec().Config = flags(kubelet.ExtraArgs(), nil), kubelet.ExtraConfig()
	spec.TypedSpec().ExtraMounts = kubelet.ExtraMounts()
	all = append(all, spec)
	if running := b.serviceRuns("kubelet"); running && b.image.version.Contract().AtLeast(14) {
		status := k8s.NewKubeletStatus(k8s.NamespaceName, k8s.KubeletID)
		status.TypedSpec().Image = kubelet.Image()
		all = append(all, status)
	}
	if status := b.nodeStatus(c); status != nil {
		all = append(all, status)
	}
	return all
}

// nodeStatus is the Node as the node itself sees it, nil if it does not yet; of a node without Kubernetes, what the Node
// would be.
func (b *boot) nodeStatus(c *nodeConfig) *k8s.NodeStatus {
	status := k8s.NewNodeStatus(k8s.NamespaceName, c.nodename(b.node))
	b.mu.Lock()
	seen := b.seen
	b.mu.Unlock()
	if seen != nil {
		*status.TypedSpec() = *seen
		return status
	}
	if b.node.world.kubernetes() {
		return nil
	}
	spec := status.TypedSpec()
	spec.Nodename = c.nodename(b.node)
	spec.NodeReady = !b.nodeNotReady() && b.serviceRuns("kubelet")
	spec.Labels, spec.Annotations = b.nodeLabels(c)
	return status
}

// nodeLabels are the labels and annotations that Talos sets on the Node.
func (b *boot) nodeLabels(c *nodeConfig) (labels, annotations map[string]string) {
	labels, annotations = map[string]string{}, map[string]string{}
	if settings := c.K8sNodeConfig(); settings != nil {
		maps.Copy(labels, settings.Labels())
		maps.Copy(annotations, settings.Annotations())
	}
	if c.controlPlane() {
		labels[constants.LabelNodeRoleControlPlane] = ""
	}
	for _, name := range b.node.world.options.Schematics[b.image.schematic] {
		labels[constants.K8sExtensionPrefix+shortName(name)] = b.image.version.String()
	}
	return labels, annotations
}
