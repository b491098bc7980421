// SPDX-License-Identifier: Apache-2.0

package longhornsim_test

import (
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/test/longhornsim"
	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
	"github.com/maesh-dev/ichor/test/longhornsim/model"
)

// Sources of claims. "Longhorn" is longhorn-manager, read at 1.12 if nothing else is said; "facts" are the reference's section
// about Longhorn.
const (
	sourceNode         = "Longhorn controller/node_controller.go"
	sourceKubeNode     = "Longhorn controller/kubernetes_node_controller.go"
	sourceVolume       = "Longhorn controller/volume_controller.go"
	sourceEvict        = "Longhorn controller/volume_controller.go, EvictReplicas and cleanupEvictionRequestedReplicas; facts 1.4"
	sourceEvictTicket  = "Longhorn controller/volume_eviction_controller.go; facts 1.4.4"
	sourceShouldEvict  = "Longhorn controller/node_controller.go, shouldEvictReplica; facts 1.3"
	sourceBudget       = "Longhorn controller/instance_manager_controller.go, canDeleteInstanceManagerPDB; facts 1.3"
	sourceScheduler    = "Longhorn scheduler/replica_scheduler.go"
	sourceReplenish    = "Longhorn controller/volume_controller.go, replenishReplicas; scheduler/replica_scheduler.go, RequireNewReplica"
	sourceNodeHook     = "Longhorn webhook/resources/node/validator.go; facts 1.5"
	sourceReplicaHook  = "Longhorn webhook/resources/replica/validator.go; facts 1.5"
	sourceVolumeHook   = "Longhorn webhook/resources/volume/validator.go; facts 1.5"
	sourceSettingHook  = "Longhorn webhook/resources/setting/validator.go"
	sourceTicketHook   = "Longhorn webhook/resources/volumeattachment/validator.go"
	sourceManager      = "Longhorn controller/instance_manager_controller.go"
	sourceDefaultDisks = "Longhorn 1.12 documentation: nodes, default disks and node configuration; facts 1.6"
)

func oneNode(change func(*subject, *longhornsim.NodeBuilder)) func(*subject) []*longhornsim.NodeBuilder {
	return func(s *subject) []*longhornsim.NodeBuilder {
		b := longhornsim.NewNode(s.a)
		change(s, b)

		return []*longhornsim.NodeBuilder{b}
	}
}

var nodeClaims = []claim{
	{
		says: "a Kubernetes Node becomes a Longhorn node of its name, with a disk at default-data-path", source: sourceDefaultDisks,
		check: func(s *subject) {
			n := s.node(s.a)
			s.Expect(n.Spec).To(And(HaveField("AllowScheduling", true), HaveField("EvictionRequested", false)))
			s.Expect(s.path(s.a)).To(Equal("/var/lib/longhorn/"))

			_, status := s.disk(s.a)
			s.Expect(status).To(And(HaveField("DiskUUID", Not(BeEmpty())), HaveField("StorageMaximum", int64(100<<30))))
			s.Expect(s.ready(s.a)).To(Equal("True "))
			s.Expect(s.manager(s.a).Status.CurrentState).To(Equal(lh.ManagerRunning))
		},
	},
	{
		says: "with create-default-disk-labeled-nodes a node without the label has no disk", source: sourceDefaultDisks,
		settings: map[string]string{model.SettingCreateDefaultDiskLabeled: "true"},
		check:    func(s *subject) { s.Expect(s.node(s.a).Status.DiskStatus).To(BeEmpty()) },
	},
	{
		says: "the annotation's disks come with the label config", source: sourceDefaultDisks,
		settings: map[string]string{model.SettingCreateDefaultDiskLabeled: "true"},
		nodes: oneNode(func(_ *subject, b *longhornsim.NodeBuilder) {
			b.Label(model.LabelCreateDefaultDisk, "config").
				Annotation(model.AnnotationDisks, `[{"name":"longhorn","path":"/var/mnt/longhorn","allowScheduling":true,"storageReserved":5,"tags":["ssd"]}]`).
				Annotation(model.AnnotationTags, `["storage"]`)
		}),
		check: func(s *subject) {
			s.Expect(s.node(s.a).Spec.Disks).To(Equal(map[string]lh.DiskSpec{"longhorn": {
				Type: lh.DiskFilesystem, Path: "/var/mnt/longhorn", AllowScheduling: true, StorageReserved: 5, Tags: []string{"ssd"},
			}}))
			s.Expect(s.node(s.a).Spec.Tags).To(Equal([]string{"storage"}))
		},
	},
	{
		says: "the annotation is applied once, and a later change of it has no effect", source: sourceKubeNode + ", syncDefaultDisks; facts 1.6",
		settings: map[string]string{model.SettingCreateDefaultDiskLabeled: "true"},
		nodes: oneNode(func(_ *subject, b *longhornsim.NodeBuilder) {
			b.Label(model.LabelCreateDefaultDisk, "config").Annotation(model.AnnotationDisks, `[{"name":"longhorn","path":"/var/mnt/longhorn"}]`)
		}),
		check: func(s *subject) {
			kube := &corev1.Node{}
			s.Expect(s.Client().Get(s.ctx, client.ObjectKey{Name: s.a}, kube)).To(Succeed())
			kube.Annotations[model.AnnotationDisks] = `[{"name":"other","path":"/var/mnt/other"}]`
			s.Expect(s.Client().Update(s.ctx, kube)).To(Succeed())
			s.settle()
			s.Expect(s.node(s.a).Spec.Disks).To(And(HaveLen(1), HaveKey("longhorn")))
		},
	},
	{
		says: "one wrong disk makes Longhorn ignore the whole annotation", source: "Longhorn types/types.go, CreateDisksFromAnnotation; longhorn#1285; facts 1.6",
		settings: map[string]string{model.SettingCreateDefaultDiskLabeled: "true"},
		nodes: oneNode(func(_ *subject, b *longhornsim.NodeBuilder) {
			b.Label(model.LabelCreateDefaultDisk, "config").
				Annotation(model.AnnotationDisks, `[{"name":"good","path":"/var/mnt/good"},{"name":"bad","path":"/var/mnt/bad","tags":["not a tag"]}]`)
		}),
		check: func(s *subject) { s.Expect(s.node(s.a).Spec.Disks).To(BeEmpty()) },
	},
	{
		says: "a disk that is mounted later is taken when it is there", source: sourceKubeNode + ", syncDefaultDisks; facts 1.6",
		settings: map[string]string{model.SettingCreateDefaultDiskLabeled: "true"},
		nodes: oneNode(func(s *subject, b *longhornsim.NodeBuilder) {
			s.SetDisk(s.a, "/var/mnt/longhorn", 0)
			b.Label(model.LabelCreateDefaultDisk, "config").Annotation(model.AnnotationDisks, `[{"name":"longhorn","path":"/var/mnt/longhorn"}]`)
		}),
		check: func(s *subject) {
			s.Expect(s.node(s.a).Spec.Disks).To(BeEmpty())
			s.SetDisk(s.a, "/var/mnt/longhorn", 50<<30)
			s.settle()
			_, status := s.disk(s.a)
			s.Expect(status.StorageMaximum).To(Equal(int64(50 << 30)))
		},
	},
	{
		says: "a cordoned node is not schedulable, unless a setting says otherwise", source: sourceNode + ", SetSchedulableCondition; facts 1.2",
		check: func(s *subject) {
			schedulable := func() lh.Condition { return lh.FindCondition(s.node(s.a).Status.Conditions, lh.ConditionSchedulable) }
			s.Expect(s.Cordon(s.ctx, s.a, true)).To(Succeed())
			s.Expect(schedulable()).To(And(HaveField("Status", lh.ConditionFalse), HaveField("Reason", lh.ReasonKubernetesNodeCordoned)))
			s.Expect(s.SetSetting(s.ctx, model.SettingDisableSchedulingCordoned, "false")).To(Succeed())
			s.Expect(schedulable()).To(HaveField("Status", lh.ConditionTrue))
		},
	},
	{
		says: "a kubelet that is not ready is given ten seconds, and one that says nothing is not", source: sourceNode + ", ignoreKubeletNotReadyTime; longhorn#7302",
		check: func(s *subject) {
			s.Expect(s.SetReady(s.ctx, s.a, corev1.ConditionFalse)).To(Succeed())
			s.Expect(s.ready(s.a)).To(Equal("True "))
			s.advance(10 * time.Second)
			s.Expect(s.ready(s.a)).To(Equal("False " + lh.ReasonKubernetesNodeNotReady))

			s.Expect(s.SetReady(s.ctx, s.b, corev1.ConditionUnknown)).To(Succeed())
			s.Expect(s.ready(s.b)).To(Equal("False " + lh.ReasonKubernetesNodeNotReady))
		},
	},
	{
		says: "a node whose manager is down is not ready", source: sourceNode + ", setReadyConditionForManagerPod",
		check: func(s *subject) {
			s.faults(func(f *model.Faults) { f.ManagerDown[s.a] = true })
			s.Expect(s.ready(s.a)).To(Equal("False " + lh.ReasonManagerPodDown))
		},
	},
	{
		says: "the disks of a node that is down look as they last did", source: sourceNode + ", syncNode: only the node's own manager looks at its disks",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b))
			s.Expect(s.SetReady(s.ctx, s.a, corev1.ConditionUnknown)).To(Succeed())
			_, status := s.disk(s.a)
			s.Expect(status.ScheduledReplica).To(HaveLen(1))
			s.Expect(lh.FindCondition(status.Conditions, lh.ConditionReady).Status).To(Equal(lh.ConditionTrue))
		},
	},
	{
		says: "a disk lists its replicas, and what they may grow to", source: sourceNode + ", updateDiskStatusSchedulableCondition",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b).Size(20<<30, 3<<30))
			_, status := s.disk(s.a)
			s.Expect(status.ScheduledReplica).To(Equal(map[string]int64{s.replica("data", s.a).Name: 20 << 30}))
			s.Expect(status.StorageScheduled).To(Equal(int64(20 << 30)))
			s.Expect(status.StorageAvailable).To(Equal(int64(97 << 30 / (100 << 20) * (100 << 20))))
		},
	},
	{
		says: "a wiped disk has another UUID, is not ready, and its replicas are on no disk", source: sourceNode + ", findNotReadyAndReadyDiskMaps; talos#14000; longhorn#12700",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b))
			_, before := s.disk(s.a)
			s.Expect(s.WipeDisk(s.ctx, s.a, s.path(s.a))).To(Succeed())
			_, status := s.disk(s.a)
			s.Expect(status.DiskUUID).To(Equal(before.DiskUUID))
			s.Expect(lh.FindCondition(status.Conditions, lh.ConditionReady).Reason).To(Equal(lh.ReasonDiskFilesystemChanged))
			s.Expect(status.ScheduledReplica).To(BeEmpty())
			s.Expect(s.replica("data", s.a).Spec.HealthyAt).NotTo(BeEmpty(), "nobody has told the replica of a detached volume")
		},
	},
	{
		says: "a full disk is under pressure and takes nothing", source: sourceScheduler + ", IsSchedulableToDisk; facts 1.4.6",
		check: func(s *subject) {
			s.Expect(s.FillDisk(s.ctx, s.a, s.path(s.a), 80<<30)).To(Succeed())
			_, status := s.disk(s.a)
			s.Expect(lh.FindCondition(status.Conditions, lh.ConditionSchedulable).Reason).To(Equal(lh.ReasonDiskPressure))
		},
	},
	{
		says: "a node whose Kubernetes Node is gone stays while it may be scheduled to, and goes when not", source: "Longhorn webhook/resources/node/validator.go, Delete; longhorn#7475; facts 1.5",
		check: func(s *subject) {
			s.Expect(s.DeleteKubeNode(s.ctx, s.a)).To(Succeed())
			s.Expect(s.ready(s.a)).To(Equal("False " + lh.ReasonKubernetesNodeGone))
			s.Expect(s.PatchNode(s.ctx, s.a, func(spec *lh.NodeSpec) { spec.AllowScheduling = false })).To(Succeed())

			var nodes lh.NodeList
			s.Expect(s.Client().List(s.ctx, &nodes, client.InNamespace(s.Namespace()))).To(Succeed())
			s.Expect(nodes.Items).To(HaveLen(3))

			var managers lh.InstanceManagerList
			s.Expect(s.Client().List(s.ctx, &managers, client.InNamespace(s.Namespace()))).To(Succeed())
			s.Expect(managers.Items).To(HaveLen(3))
		},
	},
	{
		says: "a new Kubernetes Node of a name finds the old Longhorn node with its switches", source: "facts 2.4, E10",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b))
			s.Expect(s.EvictNode(s.ctx, s.a)).To(Succeed())
			s.Expect(s.DeleteKubeNode(s.ctx, s.a)).To(Succeed())
			uid := s.node(s.a).UID
			s.Expect(s.AddNodes(s.ctx, longhornsim.NewNode(s.a))).To(Succeed())
			s.Expect(s.node(s.a).UID).To(Equal(uid))
			s.Expect(s.node(s.a).Spec.AllowScheduling).To(BeFalse())
		},
	},
}
