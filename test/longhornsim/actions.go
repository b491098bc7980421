// SPDX-License-Identifier: Apache-2.0

package longhornsim

import (
	"context"
	"fmt"
	"path"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
	"github.com/maesh-dev/ichor/test/longhornsim/model"
)

// SetFaults changes what is wrong: s.SetFaults(ctx, func(f *model.Faults) { f.RebuildStalls["data"] = true }).
func (s *Sim) SetFaults(ctx context.Context, change func(*model.Faults)) error {
	return s.act(ctx, func() { change(&s.reality.Faults) })
}

// act changes what no object says, and does what follows.
func (s *Sim) act(ctx context.Context, act func()) error {
	s.mu.Lock()
	act()
	s.mu.Unlock()

	return s.Settle(ctx)
}

// PowerOff stops a node's machine, and with it everything that runs there. Kubernetes hears of it from whoever plays the
// kubelet: see SetReady.
func (s *Sim) PowerOff(ctx context.Context, node string) error {
	return s.act(ctx, func() { s.reality.Power(node, false) })
}

// PowerOn starts a node's machine again.
func (s *Sim) PowerOn(ctx context.Context, node string) error {
	return s.act(ctx, func() { s.reality.Power(node, true) })
}

// CrashInstanceManager ends a node's instance manager with all engines and replicas in it; its pod fails.
func (s *Sim) CrashInstanceManager(ctx context.Context, node string, engine lh.DataEngine) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.options.Namespace, Name: model.InstanceManagerName(node, engine)}}
	if err := s.user.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
		return err
	}

	pod.Status.Phase = corev1.PodFailed
	if err := s.user.Status().Update(ctx, pod); err != nil {
		return err
	}

	return s.Settle(ctx)
}

// FailReplica ends the process of a volume's replica on a node.
func (s *Sim) FailReplica(ctx context.Context, volume, node string) error {
	return s.change(ctx, func(state *model.State) error {
		for name, r := range state.Replicas {
			if r.Spec.VolumeName == volume && r.Spec.NodeID == node {
				s.reality.Kill(name)

				return nil
			}
		}

		return fmt.Errorf("volume %s has no replica on node %s", volume, node)
	})
}

// KillEngine ends the process of a volume's engine.
func (s *Sim) KillEngine(ctx context.Context, volume string) error {
	return s.act(ctx, func() { s.reality.Kill(volume + "-e-0") })
}

// FillDisk has others use so many bytes of the disk at a path of a node.
func (s *Sim) FillDisk(ctx context.Context, node, at string, bytes int64) error {
	return s.act(ctx, func() { s.reality.Fill(node, at, bytes) })
}

// WipeDisk empties a disk, as a machine does that is installed anew: it has another UUID, and its replicas are gone.
func (s *Sim) WipeDisk(ctx context.Context, node, at string) error {
	return s.act(ctx, func() { s.reality.Wipe(node, at) })
}

// PullDisk takes a disk out; PutDisk puts it back.
func (s *Sim) PullDisk(ctx context.Context, node, at string) error {
	return s.act(ctx, func() { s.reality.Pull(node, at, true) })
}

// PutDisk puts back a disk that PullDisk took out.
func (s *Sim) PutDisk(ctx context.Context, node, at string) error {
	return s.act(ctx, func() { s.reality.Pull(node, at, false) })
}

// SetDisk says how large the disk at a path of a node is; 0 is none.
func (s *Sim) SetDisk(node, at string, size int64) {
	s.sizes.Store(node+":"+path.Clean(at), size)
}

// SetWebhookDown has the webhook cut every connection, as while longhorn-manager's pods roll.
func (s *Sim) SetWebhookDown(down bool) {
	s.hook.mu.Lock()
	defer s.hook.mu.Unlock()

	s.hook.down = down
}

// RefuseAsSyncing has the webhook refuse the next changes of Longhorn nodes, because their disks are being synchronized.
func (s *Sim) RefuseAsSyncing(times int) {
	s.hook.mu.Lock()
	defer s.hook.mu.Unlock()

	s.hook.syncing = times
}

// SetSetting changes one of Longhorn's settings, as a user does.
func (s *Sim) SetSetting(ctx context.Context, name, value string) error {
	setting := &lh.Setting{ObjectMeta: metav1.ObjectMeta{Namespace: s.options.Namespace, Name: name}}
	if err := s.user.Get(ctx, client.ObjectKeyFromObject(setting), setting); err != nil {
		return err
	}

	setting.Value = value
	if err := s.user.Update(ctx, setting); err != nil {
		return err
	}

	return s.Settle(ctx)
}

// PatchNode changes the spec of a Longhorn node, as a user does.
func (s *Sim) PatchNode(ctx context.Context, node string, change func(*lh.NodeSpec)) error {
	n := &lh.Node{ObjectMeta: metav1.ObjectMeta{Namespace: s.options.Namespace, Name: node}}
	if err := s.user.Get(ctx, client.ObjectKeyFromObject(n), n); err != nil {
		return err
	}

	patch := client.MergeFromWithOptions(n.DeepCopy(), client.MergeFromWithOptimisticLock{})
	change(&n.Spec)

	if err := s.user.Patch(ctx, n, patch); err != nil {
		return err
	}

	return s.Settle(ctx)
}

// EvictNode asks Longhorn to move everything away from a node, as its documentation says: no more scheduling, and eviction.
func (s *Sim) EvictNode(ctx context.Context, node string) error {
	return s.PatchNode(ctx, node, func(spec *lh.NodeSpec) { spec.AllowScheduling, spec.EvictionRequested = false, true })
}

// Cordon marks a Kubernetes Node as unschedulable, or as schedulable.
func (s *Sim) Cordon(ctx context.Context, node string, unschedulable bool) error {
	return s.patchKubeNode(ctx, node, func(kube *corev1.Node) { kube.Spec.Unschedulable = unschedulable })
}

func (s *Sim) patchKubeNode(ctx context.Context, node string, change func(*corev1.Node)) error {
	kube := &corev1.Node{}
	if err := s.user.Get(ctx, client.ObjectKey{Name: node}, kube); err != nil {
		return err
	}

	patch := client.MergeFrom(kube.DeepCopy())
	change(kube)

	if err := s.user.Patch(ctx, kube, patch); err != nil {
		return err
	}

	return s.Settle(ctx)
}

// SetReady sets the Ready condition of a Kubernetes Node, where nothing else does. Unknown is a kubelet that says nothing: the
// node does not run. False is one that runs and is not well.
func (s *Sim) SetReady(ctx context.Context, node string, ready corev1.ConditionStatus) error {
	kube := &corev1.Node{}
	if err := s.user.Get(ctx, client.ObjectKey{Name: node}, kube); err != nil {
		return err
	}

	patch := client.MergeFrom(kube.DeepCopy())
	for i := range kube.Status.Conditions {
		if kube.Status.Conditions[i].Type == corev1.NodeReady {
			kube.Status.Conditions[i].Status = ready
			kube.Status.Conditions[i].LastTransitionTime = metav1.Now()
		}
	}

	if err := s.user.Status().Patch(ctx, kube, patch); err != nil {
		return err
	}

	return s.Settle(ctx)
}

// Reboot gives a Kubernetes Node another boot ID, where nothing else does: what ran on it has ended.
func (s *Sim) Reboot(ctx context.Context, node string) error {
	kube := &corev1.Node{}
	if err := s.user.Get(ctx, client.ObjectKey{Name: node}, kube); err != nil {
		return err
	}

	patch := client.MergeFrom(kube.DeepCopy())
	kube.Status.NodeInfo.BootID += "+"

	if err := s.user.Status().Patch(ctx, kube, patch); err != nil {
		return err
	}

	return s.Settle(ctx)
}

// DeleteKubeNode deletes a Kubernetes Node, as Cluster API does after its machine.
func (s *Sim) DeleteKubeNode(ctx context.Context, node string) error {
	if err := s.user.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}); err != nil {
		return err
	}

	return s.Settle(ctx)
}

// EvictPod evicts a pod by the eviction API, as a drain does. The disruption budgets have their say.
func (s *Sim) EvictPod(ctx context.Context, namespace, name string) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := s.user.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{}); err != nil {
		return err
	}

	return s.Settle(ctx)
}
