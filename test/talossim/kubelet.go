// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/crypto/x509"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

const (
	// kubeletTick is how often the stand-in looks at its pods, and tries again what failed.
	kubeletTick = 500 * time.Millisecond
	// kubeletLease is how often it renews its lease and its status, as a kubelet does.
	kubeletLease = 10 * time.Second
)

// kubelet stands in for a node's kubelet: it registers the Node with what the configuration says and the API server lets
// it, keeps its status and lease, says of the pods on the node that they run, and ends those that are deleted. No container runs.
type kubelet struct {
	boot   *boot
	config *nodeConfig
	name   string

	nodes  coreclient.NodeInterface
	pods   func(namespace string) coreclient.PodInterface
	leases coordinationclient.LeaseInterface
	// admin is the control plane's own access, by which Talos sets labels that a kubelet may not.
	admin coreclient.NodeInterface
	// cloud is the access of the platform's cloud controller manager.
	cloud coreclient.NodeInterface

	renewed time.Time
}

// runKubelet lives as long as the boot. A change of the configuration starts the kubelet again, with what it says then.
func (b *boot) runKubelet() {
	ticker := time.NewTicker(kubeletTick)
	defer ticker.Stop()
	var k *kubelet
	registered := false
	for {
		if k == nil && b.serviceRuns("kubelet") {
			k, _ = b.newKubelet()
		}
		if k != nil {
			if !registered && k.register(b.ctx) == nil {
				registered = true
				b.mu.Lock()
				b.registered = true
				b.mu.Unlock()
				b.publish()
			}
			if registered {
				k.tick(b.ctx)
			}
		}
		select {
		case <-b.ctx.Done():
			return
		case <-b.kubeletChanged:
			k, registered = nil, false
		case <-ticker.C:
		}
	}
}

func (b *boot) newKubelet() (*kubelet, error) {
	c := b.config()
	ca := c.K8sAPIServerCAConfig()
	if ca == nil || len(ca.AcceptedCAs()) == 0 || c.K8sClusterConfig() == nil {
		return nil, errNoConfig
	}
	authority, err := b.node.world.authority(b.ctx, ca.AcceptedCAs()[0].Crt)
	if err != nil {
		return nil, err
	}
	server := c.K8sClusterConfig().ClusterEndpoint().String()
	if c.controlPlane() {
		server = "https://" + c.serverAddress(b.node.address)
	}
	name := c.nodename(b.node)
	core, coordination, err := kubernetesClients(authority, server, "system:node:"+name, "system:nodes")
	if err != nil {
		return nil, err
	}
	k := &kubelet{boot: b, config: c, name: name, nodes: core.Nodes(), pods: core.Pods, leases: coordination.Leases(corev1.NamespaceNodeLease)}
	cloud, _, err := kubernetesClients(authority, server, "cloud-controller-manager", "system:masters")
	if err != nil {
		return nil, err
	}
	k.admin, k.cloud = k.nodes, cloud.Nodes()
	if c.controlPlane() {
		admin, _, err := kubernetesClients(authority, server, "talos", "system:masters")
		if err != nil {
			return nil, err
		}
		k.admin = admin.Nodes()
	}
	return k, nil
}

func kubernetesClients(ca *x509.CertificateAuthority, server, user, group string) (*coreclient.CoreV1Client, *coordinationclient.CoordinationV1Client, error) {
	pair, err := signClient(ca, user, group)
	if err != nil {
		return nil, nil, err
	}
	config := &rest.Config{
		Host: server, QPS: -1, Timeout: 10 * time.Second,
		TLSClientConfig: rest.TLSClientConfig{CAData: ca.CrtPEM, CertData: pair.CrtPEM, KeyData: pair.KeyPEM},
	}
	core, err := coreclient.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	coordination, err := coordinationclient.NewForConfig(config)
	return core, coordination, err
}

// register creates the Node, or takes the one that is there, and brings it up to date.
func (k *kubelet) register(ctx context.Context) error {
	_, err := k.nodes.Create(ctx, k.wanted(), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := k.updateStatus(ctx); err != nil {
		return err
	}
	k.own(ctx)
	k.uncordon(ctx)
	return k.initialize(ctx)
}

// uninitializedTaint is what the kubelet of a node with an external cloud provider registers with.
const uninitializedTaint = "node.cloudprovider.kubernetes.io/uninitialized"

// initialize does what a platform's cloud controller manager does with a Node that has come: it sets the provider ID, which
// is there for life, and takes away the taint that waits for that.
func (k *kubelet) initialize(ctx context.Context) error {
	id := k.boot.node.options.ProviderID
	if id == "" {
		return nil
	}
	node, err := k.cloud.Get(ctx, k.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	changed := node.DeepCopy()
	if changed.Spec.ProviderID == "" {
		changed.Spec.ProviderID = id
	}
	changed.Spec.Taints = slices.DeleteFunc(changed.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == uninitializedTaint })
	if equality.Semantic.DeepEqual(node.Spec, changed.Spec) {
		return nil
	}
	_, err = k.cloud.Update(ctx, changed, metav1.UpdateOptions{})
	return err
}

// managedAttachAnnotation is on the Node of a kubelet that leaves it to the attach-detach controller to attach volumes, as is the default.
const managedAttachAnnotation = "volumes.kubernetes.io/controller-managed-attach-detach"

// wanted is the Node that a kubelet would create.
func (k *kubelet) wanted() *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: k.name, Labels: map[string]string{
		corev1.LabelHostname: k.name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: runtime.GOARCH,
	}, Annotations: map[string]string{
		// Without it, the attach-detach controller would leave the node's volumes to the kubelet.
		managedAttachAnnotation: "true",
	}}}
	args := k.config.K8sKubeletConfig().ExtraArgs()
	if ids := args["provider-id"]; len(ids) > 0 {
		node.Spec.ProviderID = ids[0]
	}
	if slices.Equal(args["cloud-provider"], []string{"external"}) {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{
			Key: uninitializedTaint, Value: "true", Effect: corev1.TaintEffectNoSchedule,
		})
	}
	if settings := k.config.K8sNodeConfig(); settings != nil {
		taints := settings.Taints()
		for _, key := range slices.Sorted(maps.Keys(taints)) {
			value, effect, found := strings.Cut(taints[key], ":")
			if !found {
				value, effect = "", taints[key]
			}
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
		}
	}
	return node
}

// updateStatus writes what the machine is now.
func (k *kubelet) updateStatus(ctx context.Context) error {
	node, err := k.nodes.Get(ctx, k.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	b, now := k.boot, metav1.Now()
	node.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: b.node.address},
		{Type: corev1.NodeHostName, Address: k.config.hostname(b.node)},
	}
	node.Status.NodeInfo = corev1.NodeSystemInfo{
		MachineID: strings.ReplaceAll(b.node.uuid, "-", ""), SystemUUID: b.node.uuid, BootID: b.id,
		KernelVersion: "6.18.0-talos", OSImage: fmt.Sprintf("Talos (%s)", b.image.version), OperatingSystem: "linux",
		Architecture: runtime.GOARCH, ContainerRuntimeVersion: "containerd://2.1.0", KubeletVersion: k.config.kubernetesVersion(),
	}
	node.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	node.Status.Allocatable = node.Status.Capacity
	node.Status.Conditions = k.conditions(node.Status.Conditions, now)
	updated, err := k.nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	b.see(updated)
	return nil
}

// conditions are those that a kubelet reports.
func (k *kubelet) conditions(before []corev1.NodeCondition, now metav1.Time) []corev1.NodeCondition {
	ready := corev1.ConditionTrue
	if k.boot.nodeNotReady() {
		ready = corev1.ConditionFalse
	}
	conditions := []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse},
		{Type: corev1.NodeReady, Status: ready},
	}
	for i := range conditions {
		c := &conditions[i]
		c.Reason, c.Message = "Simulated", "no kubelet runs here"
		c.LastHeartbeatTime, c.LastTransitionTime = now, now
		for _, old := range before {
			if old.Type == c.Type && old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
		}
	}
	return conditions
}

// tick does what is due. What fails is tried again at the next.
func (k *kubelet) tick(ctx context.Context) {
	k.syncPods(ctx)
	if time.Since(k.renewed) < kubeletLease {
		return
	}
	// An API in memory has no leases.
	if (k.boot.node.world.memory != nil || k.renewLease(ctx) == nil) && k.updateStatus(ctx) == nil {
		k.renewed = time.Now()
	}
}

func (k *kubelet) renewLease(ctx context.Context) error {
	spec := coordinationv1.LeaseSpec{
		HolderIdentity: new(k.name), LeaseDurationSeconds: new(int32(40)), RenewTime: &metav1.MicroTime{Time: time.Now()},
	}
	lease, err := k.leases.Get(ctx, k.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = k.leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: k.name}, Spec: spec}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	lease.Spec = spec
	_, err = k.leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

// syncPods says that the pods of the node run, lets go of those that are being deleted, as a kubelet does when their containers have
// ended, and shows the static pods.
func (k *kubelet) syncPods(ctx context.Context) {
	list, err := k.pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + k.name})
	if err != nil {
		return
	}
	mirrored := map[string]*corev1.Pod{}
	for _, pod := range list.Items {
		switch {
		case pod.DeletionTimestamp != nil:
			k.remove(ctx, &pod)
		case pod.Annotations[corev1.MirrorPodAnnotationKey] != "":
			mirrored[pod.Name] = &pod
		case pod.Status.Phase == corev1.PodPending:
			k.showRunning(ctx, &pod)
		}
	}
	k.mirror(ctx, mirrored)
}

// showRunning says that a pod's containers have started and are ready. What fails is tried again at the next tick.
func (k *kubelet) showRunning(ctx context.Context, pod *corev1.Pod) {
	now := metav1.Now()
	updated := pod.DeepCopy()
	updated.Status.Phase, updated.Status.StartTime = corev1.PodRunning, &now
	updated.Status.HostIP, updated.Status.PodIP = k.boot.node.address, k.boot.node.address
	updated.Status.Conditions = slices.DeleteFunc(updated.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady || c.Type == corev1.ContainersReady || c.Type == corev1.PodInitialized
	})
	for _, condition := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		updated.Status.Conditions = append(updated.Status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	_, _ = k.pods(pod.Namespace).UpdateStatus(ctx, updated, metav1.UpdateOptions{})
}

func (k *kubelet) remove(ctx context.Context, pod *corev1.Pod) {
	options := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
	_ = k.pods(pod.Namespace).Delete(ctx, pod.Name, options)
}
