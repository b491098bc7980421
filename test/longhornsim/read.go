// SPDX-License-Identifier: Apache-2.0

package longhornsim

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
	"github.com/maesh-dev/ichor/test/longhornsim/model"
)

// csiDriver is Longhorn's.
const csiDriver = "driver.longhorn.io"

// namespaceAnnotation on a PersistentVolume names the Longhorn that it is of, by its namespace.
const namespaceAnnotation = "longhornsim.ichor.maesh.dev/namespace"

// objects are everything that the Sim goes by, as lists.
type objects struct {
	backingImages lh.BackingImageList
	engines       lh.EngineList
	engineImages  lh.EngineImageList
	managers      lh.InstanceManagerList
	nodes         lh.NodeList
	replicas      lh.ReplicaList
	settings      lh.SettingList
	shards        lh.ShardList
	shardGroups   lh.ShardGroupList
	shareManagers lh.ShareManagerList
	volumes       lh.VolumeList
	attachments   lh.VolumeAttachmentList

	kubeNodes       corev1.NodeList
	pods            corev1.PodList
	budgets         policyv1.PodDisruptionBudgetList
	kubeVolumes     corev1.PersistentVolumeList
	kubeAttachments storagev1.VolumeAttachmentList
}

// read reads all lists at once. One after the other would take many times as long: a list that is to be as new as anything in etcd
// waits, in the API server, for the news that it is, which come ten times a second.
func (s *Sim) read(ctx context.Context) (*objects, error) {
	o := &objects{}
	group, ctx := errgroup.WithContext(ctx)

	s.readOwn(ctx, group, o)
	s.list(ctx, group, &o.kubeNodes, client.MatchingLabels(s.options.NodeLabels))
	s.list(ctx, group, &o.pods)
	s.list(ctx, group, &o.budgets, client.InNamespace(s.options.Namespace), client.HasLabels{model.LabelManagedBy})
	s.list(ctx, group, &o.kubeVolumes)
	s.list(ctx, group, &o.kubeAttachments)

	if err := group.Wait(); err != nil {
		return nil, err
	}

	o.kubeVolumes.Items = slices.DeleteFunc(o.kubeVolumes.Items, func(pv corev1.PersistentVolume) bool { return !s.owns(&pv) })

	return o, nil
}

// owns is whether a PersistentVolume is one of this Longhorn. Several that share an API server have one CSI driver.
func (s *Sim) owns(pv *corev1.PersistentVolume) bool {
	of := pv.Annotations[namespaceAnnotation]

	return pv.Spec.CSI != nil && pv.Spec.CSI.Driver == csiDriver && (of == "" || of == s.options.Namespace)
}

// readOwn begins to read the lists of Longhorn's own kinds.
func (s *Sim) readOwn(ctx context.Context, group *errgroup.Group, o *objects) {
	for _, list := range []client.ObjectList{
		&o.backingImages, &o.engines, &o.engineImages, &o.managers, &o.nodes, &o.replicas, &o.settings, &o.shards, &o.shardGroups,
		&o.shareManagers, &o.volumes, &o.attachments,
	} {
		s.list(ctx, group, list, client.InNamespace(s.options.Namespace))
	}
}

func (s *Sim) list(ctx context.Context, group *errgroup.Group, into client.ObjectList, options ...client.ListOption) {
	group.Go(func() error { return s.client.List(ctx, into, options...) })
}

// state is what the model decides by.
func (s *Sim) state(o *objects) *model.State {
	state := model.NewState(s.options.Namespace, s.reality, s.options.Clock.Now())

	index(state.BackingImages, o.backingImages.Items)
	index(state.Engines, o.engines.Items)
	index(state.EngineImages, o.engineImages.Items)
	index(state.InstanceManagers, o.managers.Items)
	index(state.Nodes, o.nodes.Items)
	index(state.Replicas, o.replicas.Items)
	index(state.Shards, o.shards.Items)
	index(state.ShardGroups, o.shardGroups.Items)
	index(state.ShareManagers, o.shareManagers.Items)
	index(state.Volumes, o.volumes.Items)
	index(state.VolumeAttachments, o.attachments.Items)
	index(state.KubeNodes, o.kubeNodes.Items)
	index(state.Budgets, o.budgets.Items)

	for i := range o.pods.Items {
		pod := &o.pods.Items[i]
		if _, own := pod.Labels[model.LabelComponent]; own && pod.Namespace == s.options.Namespace {
			state.Pods[pod.Name] = pod.DeepCopy() // what plays the kubelet looks at the others, and changes them
		}
	}

	for _, setting := range o.settings.Items {
		state.Settings[setting.Name] = setting.Value
	}

	state.Claims = claims(o)

	return state
}

// ownState is what Longhorn's own objects say.
func (s *Sim) ownState(ctx context.Context) (*model.State, error) {
	o := &objects{}
	group, ctx := errgroup.WithContext(ctx)
	s.readOwn(ctx, group, o)

	if err := group.Wait(); err != nil {
		return nil, err
	}

	return s.state(o), nil
}

func index[T any, P interface {
	*T
	client.Object
}](into map[string]P, items []T) {
	for i := range items {
		object := P(&items[i])
		into[object.GetName()] = object
	}
}

// claims says which claims and pods use the volumes.
func claims(o *objects) map[string]lh.KubernetesStatus {
	claims := map[string]lh.KubernetesStatus{}

	for _, pv := range o.kubeVolumes.Items {
		status := lh.KubernetesStatus{PVName: pv.Name, PVStatus: string(pv.Status.Phase)}

		if ref := pv.Spec.ClaimRef; ref != nil {
			status.Namespace, status.PVCName = ref.Namespace, ref.Name

			for i := range o.pods.Items {
				if pod := &o.pods.Items[i]; pod.Namespace == ref.Namespace && uses(pod, ref.Name) {
					status.WorkloadsStatus = append(status.WorkloadsStatus, workload(pod))
				}
			}
		}

		claims[pv.Spec.CSI.VolumeHandle] = status
	}

	return claims
}

// uses is whether a pod that has not ended names a claim.
func uses(pod *corev1.Pod, claim string) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false
	}

	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	})
}

func workload(pod *corev1.Pod) lh.WorkloadStatus {
	status := lh.WorkloadStatus{PodName: pod.Name, PodStatus: string(pod.Status.Phase)}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		status.WorkloadName, status.WorkloadType = owner.Name, owner.Kind
	}

	return status
}
