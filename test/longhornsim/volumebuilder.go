// SPDX-License-Identifier: Apache-2.0

package longhornsim

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
	"github.com/maesh-dev/ichor/test/longhornsim/model"
)

// VolumeBuilder describes a volume for Create: NewVolume("data").On("a", "b", "c").AttachedTo("a").
type VolumeBuilder struct {
	spec  model.VolumeSpec
	claim claimName
}

// claimName names a claim.
type claimName struct{ namespace, name string }

// NewVolume begins with a volume of 10 GiB and three replicas, of which 1 GiB is used. Without On its replicas are scheduled as
// a new volume's are, and have no data before it is attached.
func NewVolume(name string) *VolumeBuilder {
	return &VolumeBuilder{spec: model.VolumeSpec{
		Name: name, Used: 1 << 30,
		Spec: lh.VolumeSpec{
			Size: 10 << 30, Frontend: "blockdev", NumberOfReplicas: 3, DataEngine: lh.DataEngineV1, AccessMode: lh.AccessReadWriteOnce,
			DataLocality: lh.DataLocalityDisabled, ReplicaAutoBalance: lh.Ignored, ReplicaSoftAntiAffinity: lh.Ignored,
			ReplicaZoneSoftAntiAffinity: lh.Ignored, ReplicaDiskSoftAntiAffinity: lh.Ignored, OfflineRebuilding: lh.Ignored,
			StaleReplicaTimeout: 2880, Image: model.DefaultImage,
		},
	}}
}

// On has a complete replica on each of the nodes, and sets the number of replicas to theirs. NODE/DISK names one of a node's
// disks; NODE alone is its first.
func (b *VolumeBuilder) On(nodes ...string) *VolumeBuilder {
	b.spec.On = nodes
	b.spec.Spec.NumberOfReplicas = len(nodes)

	return b
}

// Wants sets the number of replicas that the volume should have.
func (b *VolumeBuilder) Wants(replicas int) *VolumeBuilder {
	b.spec.Spec.NumberOfReplicas = replicas

	return b
}

// FailedOn marks the replicas on nodes of On as failed.
func (b *VolumeBuilder) FailedOn(nodes ...string) *VolumeBuilder {
	b.spec.Failed = nodes

	return b
}

// NeverUsed leaves the replicas of On without data, as those of a volume that was never attached.
func (b *VolumeBuilder) NeverUsed() *VolumeBuilder {
	b.spec.NeverUsed = true

	return b
}

// Size sets the size and how much of it is used, in bytes.
func (b *VolumeBuilder) Size(size, used int64) *VolumeBuilder {
	b.spec.Spec.Size, b.spec.Used = size, used

	return b
}

// AttachedTo has the CSI driver attach the volume to a node.
func (b *VolumeBuilder) AttachedTo(node string) *VolumeBuilder {
	b.spec.Tickets = append(b.spec.Tickets, lh.AttachmentTicket{ID: "attached-to-" + node, Type: lh.AttacherCSI, NodeID: node})

	return b
}

// ManuallyAttachedTo has a user attach the volume to a node, in Longhorn's own interface.
func (b *VolumeBuilder) ManuallyAttachedTo(node string) *VolumeBuilder {
	b.spec.Tickets = append(b.spec.Tickets, lh.AttachmentTicket{ID: "longhorn-ui", Type: lh.AttacherAPI, NodeID: node})

	return b
}

// Claim gives the volume a PersistentVolume and a claim that is bound to it. The namespace must be there.
func (b *VolumeBuilder) Claim(namespace, name string) *VolumeBuilder {
	b.claim = claimName{namespace, name}

	return b
}

// Spec changes any field of the volume's spec.
func (b *VolumeBuilder) Spec(change func(*lh.VolumeSpec)) *VolumeBuilder {
	change(&b.spec.Spec)

	return b
}

// Status changes any field of the status that Longhorn does not keep by itself: a restore, a clone, an expansion.
func (b *VolumeBuilder) Status(change func(*lh.VolumeStatus)) *VolumeBuilder {
	b.spec.Status = append(b.spec.Status, change)

	return b
}

// Engine sets the data engine.
func (b *VolumeBuilder) Engine(engine lh.DataEngine) *VolumeBuilder {
	return b.Spec(func(spec *lh.VolumeSpec) { spec.DataEngine = engine })
}

// Locality sets the data locality: lh.DataLocalityBestEffort, lh.DataLocalityStrictLocal.
func (b *VolumeBuilder) Locality(locality string) *VolumeBuilder {
	return b.Spec(func(spec *lh.VolumeSpec) { spec.DataLocality = locality })
}

// Shared lets many nodes write, through a share manager.
func (b *VolumeBuilder) Shared() *VolumeBuilder {
	return b.Spec(func(spec *lh.VolumeSpec) { spec.AccessMode = lh.AccessReadWriteMany })
}

// Selects sets the tags that nodes and disks must have.
func (b *VolumeBuilder) Selects(nodeTags, diskTags []string) *VolumeBuilder {
	return b.Spec(func(spec *lh.VolumeSpec) { spec.NodeSelector, spec.DiskSelector = nodeTags, diskTags })
}

// StaleAfter sets after how long a failed replica is given up.
func (b *VolumeBuilder) StaleAfter(d time.Duration) *VolumeBuilder {
	return b.Spec(func(spec *lh.VolumeSpec) { spec.StaleReplicaTimeout = int(d.Minutes()) })
}

// MigratingTo has a second engine, on the node to which the volume migrates.
func (b *VolumeBuilder) MigratingTo(node string) *VolumeBuilder {
	b.spec.MigratingTo = node

	return b.Spec(func(spec *lh.VolumeSpec) {
		spec.Migratable, spec.AccessMode, spec.MigrationNodeID = true, lh.AccessReadWriteMany, node
	})
}

// LinkedCloneOf has the replicas depend on those of another volume on the same nodes.
func (b *VolumeBuilder) LinkedCloneOf(source string) *VolumeBuilder {
	b.spec.LinkedTo = source

	return b.Spec(func(spec *lh.VolumeSpec) { spec.CloneMode = "linked-clone" })
}

// Sharded cuts the volume into pieces, one for each of the nodes, of which some are parity.
func (b *VolumeBuilder) Sharded(parity int, nodes ...string) *VolumeBuilder {
	b.spec.On = nodes

	return b.Spec(func(spec *lh.VolumeSpec) {
		spec.NumberOfReplicas = 1
		spec.DataLayout = &lh.DataLayout{Type: lh.LayoutSharded, DataChunks: len(nodes) - parity, ParityChunks: parity}
	})
}

// Create makes volumes, and waits for nothing: what Longhorn does at once is done when it returns.
func (s *Sim) Create(ctx context.Context, volumes ...*VolumeBuilder) error {
	created := map[string]bool{}

	err := s.change(ctx, func(state *model.State) error {
		for _, b := range volumes {
			if created[b.spec.Name] && state.Volumes[b.spec.Name] != nil {
				continue // a second attempt
			}

			if err := state.AddVolume(b.spec); err != nil {
				return fmt.Errorf("volume %s: %w", b.spec.Name, err)
			}

			created[b.spec.Name] = true
		}

		return nil
	})
	if err != nil {
		return err
	}

	for _, b := range volumes {
		if b.claim.name == "" {
			continue
		}

		if err := s.createClaim(ctx, b); err != nil {
			return fmt.Errorf("volume %s: claim %s/%s: %w", b.spec.Name, b.claim.namespace, b.claim.name, err)
		}
	}

	return s.Settle(ctx)
}

func (s *Sim) createClaim(ctx context.Context, b *VolumeBuilder) error {
	var (
		size   = corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(b.spec.Spec.Size, resource.BinarySI)}
		class  = "longhorn"
		mode   = corev1.ReadWriteOnce
		pvName = s.PersistentVolume(b.spec.Name)
	)

	if b.spec.Spec.AccessMode == lh.AccessReadWriteMany {
		mode = corev1.ReadWriteMany
	}

	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.claim.namespace, Name: b.claim.name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{mode}, StorageClassName: &class, VolumeName: pvName,
			Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	}
	if err := s.user.Create(ctx, claim); err != nil {
		return err
	}

	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: pvName, Annotations: map[string]string{namespaceAnnotation: s.options.Namespace}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: []corev1.PersistentVolumeAccessMode{mode}, StorageClassName: class,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: csiDriver, VolumeHandle: b.spec.Name},
			},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
		},
	}
	if err := s.user.Create(ctx, pv); err != nil {
		return err
	}

	// Where there is a volume controller, it may have bound both by itself.
	pv.Status.Phase = corev1.VolumeBound
	if err := s.user.Status().Update(ctx, pv); err != nil && !apierrors.IsConflict(err) {
		return err
	}

	claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: size, AccessModes: claim.Spec.AccessModes}

	if err := s.user.Status().Update(ctx, claim); err != nil && !apierrors.IsConflict(err) {
		return err
	}

	return nil
}

// PersistentVolume is the name of the PersistentVolume that Create makes for a volume with a claim.
func (s *Sim) PersistentVolume(volume string) string {
	if s.options.Namespace == DefaultNamespace {
		return "pvc-" + volume
	}

	return "pvc-" + s.options.Namespace + "-" + volume
}

// Workload is a pod that uses a claim, on a node, of a controller or by itself.
func (s *Sim) Workload(ctx context.Context, namespace, name, node, claim string) (*corev1.Pod, error) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			NodeName:   node,
			Containers: []corev1.Container{{Name: "main", Image: "app"}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}}},
		},
	}
	if err := s.user.Create(ctx, pod); err != nil {
		return nil, err
	}

	return pod, s.Settle(ctx)
}

// CreateBackingImage makes a backing image of a size with a file on each of the disks, NODE/DISK or NODE.
func (s *Sim) CreateBackingImage(ctx context.Context, name string, size int64, disks ...string) error {
	return s.change(ctx, func(state *model.State) error {
		if state.BackingImages[name] != nil {
			return nil
		}

		return state.AddBackingImage(name, size, disks)
	})
}
