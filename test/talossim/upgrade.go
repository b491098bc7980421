// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/compatibility"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	runtimeres "github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// drainTimeout is how long a node waits for the pods that it evicts; it goes on whether they have gone or not. Source:
// Talos, pkg/kubernetes, Drain.
const drainTimeout = 5 * time.Minute

// drainInterval is how often an eviction that a disruption budget refuses is tried again.
const drainInterval = 100 * time.Millisecond

// Upgrade is the legacy call: it validates, and then does everything by itself. Preserve means nothing: since Talos 1.8 the
// data is always kept.
func (s *machineService) Upgrade(ctx context.Context, request *machine.UpgradeRequest) (*machine.UpgradeResponse, error) {
	b, n := s.boot, s.boot.node
	remark(ctx).say("image=%s", request.GetImage())
	if request.GetStage() {
		remark(ctx).say("staged")
	}
	if request.GetForce() {
		remark(ctx).say("forced")
	}
	if err := b.mustBeConfigured("upgrade"); err != nil {
		return nil, err
	}
	image, err := parseImage(request.GetImage())
	if err != nil || !n.world.hasImage(request.GetImage()) || n.Faults().PullFails != "" {
		return nil, status.Errorf(codes.Unknown, "error validating installer image %q: cannot be pulled: %v %s", request.GetImage(), err, n.Faults().PullFails)
	}
	if b.config().controlPlane() && !request.GetForce() {
		if err := b.validateEtcdForUpgrade(ctx); err != nil {
			return nil, status.Errorf(codes.Unknown, "error validating etcd for upgrade: %v", err)
		}
	}
	if request.GetStage() {
		n.mu.Lock()
		n.disk.staged = &image
		n.mu.Unlock()
		actor := b.leave(stageSequence, runtimeres.MachineStageUpgrading, nil, n.start)
		return &machine.UpgradeResponse{Messages: []*machine.Upgrade{{Ack: "Upgrade request received", ActorId: actor}}}, nil
	}
	actor := b.leave(upgradeSequence, runtimeres.MachineStageUpgrading, b.drained, func(ctx context.Context) error {
		_, _ = n.installUpgrade(image, b) // One that fails leaves what was there, and is noted.
		return n.start(ctx)
	})
	return &machine.UpgradeResponse{Messages: []*machine.Upgrade{{Ack: "Upgrade request received", ActorId: actor}}}, nil
}

// preflight is what an installer checks before it touches the disk: that it may follow the Talos that runs, and runs the Kubernetes of the node's
// configuration. A staged one runs before there is any. Source: Talos, cmd/installer/pkg/install, PreflightChecks.
func (n *Node) preflight(image osImage, from *boot) error {
	n.mu.Lock()
	runs := n.disk.slots[n.disk.next]
	n.mu.Unlock()
	if from != nil {
		runs = from.image
	}
	host, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: runs.version.String()})
	if err != nil {
		return err
	}
	target, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: image.version.String()})
	if err != nil {
		return err
	}
	if err := target.UpgradeableFrom(host); err != nil {
		return err
	}
	if from == nil || from.config() == nil {
		return nil
	}
	return checkKubernetes(image.version, from.config())
}

// installUpgrade runs the installer, in a boot or before there is one, and tells with what it ends and, if it would not begin, why.
func (n *Node) installUpgrade(image osImage, from *boot) (code int32, refused error) {
	refused = n.preflight(image, from)
	n.mu.Lock()
	code = n.faults.InstallExitCode
	if refused != nil {
		code = 1
	}
	if code == 0 {
		n.disk.install(image)
	}
	n.mu.Unlock()
	if code == 0 {
		n.note("installs %s beside what runs", image.version)
	} else {
		n.note("fails to install %s", image.version)
	}
	return code, refused
}

// validateEtcdForUpgrade is what the legacy upgrade asks of a control-plane node's cluster, under a lock that the cluster has
// for this: all members must have started and be healthy, and there must not be two. The lock is held for the questions
// alone, and whoever does not get it at once is refused: it keeps two nodes from asking at the same time, and not from
// going down at the same time. Source: Talos, internal/app/machined/internal/server, Upgrade; internal/pkg/etcd,
// ValidateForUpgrade.
func (b *boot) validateEtcdForUpgrade(ctx context.Context) error {
	etcd := b.node.member()
	if etcd == nil {
		return errNotRunning
	}
	lock := b.node.world.upgradeLock(b.node.etcdAuthority())
	if !lock.TryLock() {
		return errors.New("failed to acquire upgrade mutex: mutex: Locked by another session")
	}
	defer lock.Unlock()
	if hold := b.node.Faults().ValidationTakes; hold > 0 {
		timer := time.NewTimer(hold)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	members, err := etcd.list(ctx, false)
	if err != nil {
		return err
	}
	if len(members) == 2 {
		return fmt.Errorf("etcd member count(2) is insufficient to maintain quorum if upgrade commences")
	}
	for _, member := range members {
		if member.GetHostname() == "" {
			return fmt.Errorf("etcd member %016x is not started, all members must be running to perform an upgrade", member.GetId())
		}
		if err := etcd.healthy(ctx, member); err != nil {
			return fmt.Errorf("etcd member %016x is not healthy; all members must be healthy to perform an upgrade: %w", member.GetId(), err)
		}
	}
	return nil
}

// cordonAndDrain is what the legacy upgrade and a graceful reset do with the Node before anything else: cordon it, with an
// annotation by which the next boot knows that it may undo that, and evict its pods but for mirror pods, those of
// DaemonSets and those that nobody manages. Source: Talos, pkg/kubernetes, CordonAndDrain.
func (b *boot) cordonAndDrain(ctx context.Context) {
	if !b.node.world.kubernetes() {
		return
	}
	k, err := b.newKubelet()
	if err != nil {
		return
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}},"spec":{"unschedulable":true}}`, constants.AnnotationCordonedKey, constants.AnnotationCordonedValue)
	node, err := k.nodes.Get(ctx, k.name, metav1.GetOptions{})
	if err != nil {
		return
	}
	if !node.Spec.Unschedulable {
		_, _ = k.admin.Patch(ctx, k.name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	}
	timeout := drainTimeout
	if b.node.world.options.DrainTimeout > 0 {
		timeout = b.node.world.options.DrainTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	k.evictAll(ctx)
}

// evictAll waits until the pods that it evicts are gone, or ctx is done.
func (k *kubelet) evictAll(ctx context.Context) {
	ticker := time.NewTicker(drainInterval)
	defer ticker.Stop()
	for {
		list, err := k.pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + k.name})
		left := err != nil
		if err == nil {
			for _, pod := range list.Items {
				left = k.evict(ctx, &pod) || left
			}
		}
		if !left {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// evict tells whether a pod is one to wait for.
func (k *kubelet) evict(ctx context.Context, pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	if pod.Annotations[corev1.MirrorPodAnnotationKey] != "" || owner == nil || owner.Kind == "DaemonSet" {
		return false
	}
	if pod.DeletionTimestamp == nil {
		err := k.pods(pod.Namespace).EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}})
		return !apierrors.IsNotFound(err)
	}
	k.remove(ctx, pod)
	return true
}

// uncordon undoes what cordonAndDrain did before this boot, and no one else's cordon.
func (k *kubelet) uncordon(ctx context.Context) {
	node, err := k.nodes.Get(ctx, k.name, metav1.GetOptions{})
	if err != nil || node.Annotations[constants.AnnotationCordonedKey] == "" {
		return
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:null}},"spec":{"unschedulable":false}}`, constants.AnnotationCordonedKey)
	_, _ = k.admin.Patch(ctx, k.name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
}
