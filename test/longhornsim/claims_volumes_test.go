// SPDX-License-Identifier: Apache-2.0

package longhornsim_test

import (
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/test/longhornsim"
	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
	"github.com/maesh-dev/ichor/test/longhornsim/model"
)

var volumeClaims = []claim{
	{
		says: "a new volume has one engine and its replicas on as many nodes, and no data", source: sourceVolume + ", reconcileVolumeCreation; longhorn#2673",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data"))
			s.Expect(s.volume("data").Status).To(And(HaveField("State", lh.VolumeDetached), HaveField("Robustness", lh.RobustnessUnknown)))
			s.Expect(s.engine("data").Spec).To(HaveField("Active", true))
			s.Expect(s.replicas("data")).To(HaveLen(3))
			for _, r := range s.replicas("data") {
				s.Expect(r.Spec).To(And(HaveField("HealthyAt", ""), HaveField("FailedAt", ""), HaveField("NodeID", Not(BeEmpty()))))
			}
		},
	},
	{
		says: "an attached volume is healthy, its engine runs on the node and reads all replicas", source: sourceVolume + ", ReconcileEngineReplicaState",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").AttachedTo(s.a))
			s.Expect(s.volume("data").Status).To(And(
				HaveField("State", lh.VolumeAttached), HaveField("Robustness", lh.RobustnessHealthy), HaveField("CurrentNodeID", s.a)))
			s.Expect(s.engine("data").Spec.NodeID).To(Equal(s.a))
			for _, r := range s.replicas("data") {
				s.Expect(s.engine("data").Status.ReplicaModeMap).To(HaveKeyWithValue(r.Name, lh.ModeRW))
				s.Expect(r.Spec.HealthyAt).NotTo(BeEmpty())
				s.Expect(r.Status.CurrentState).To(Equal(lh.InstanceRunning))
				s.Expect(s.manager(r.Spec.NodeID).Status.InstanceReplicas).To(HaveKey(r.Name))
			}
			s.Expect(s.manager(s.a).Status.InstanceEngines).To(HaveKey("data-e-0"))
		},
	},
	{
		says: "the robustness of a detached volume is unknown", source: "facts 1.1",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b).FailedOn(s.b))
			s.Expect(s.volume("data").Status).To(And(HaveField("State", lh.VolumeDetached), HaveField("Robustness", lh.RobustnessUnknown)))
		},
	},
	{
		says: "a volume attaches in the time that attaching takes, and detaches when nobody wants it", source: sourceVolume + ", reconcileAttachDetachStateMachine",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b))
			s.faults(func(f *model.Faults) { f.AttachStuck["data"] = true })
			s.ticket("data", s.a)
			s.Expect(s.volume("data").Status.State).To(Equal(lh.VolumeAttaching))
			s.faults(func(f *model.Faults) { delete(f.AttachStuck, "data") })
			s.Expect(s.volume("data").Status.State).To(Equal(lh.VolumeAttached))
			s.ticket("data", "")
			s.Expect(s.volume("data").Status).To(And(HaveField("State", lh.VolumeDetached), HaveField("CurrentNodeID", "")))
			s.Expect(s.engine("data").Spec.NodeID).To(BeEmpty())
			s.Expect(s.replica("data", s.b).Status.CurrentState).To(Equal(lh.InstanceStopped))
		},
	},
	{
		says: "an engine that does not stop keeps its volume detaching", unsourced: "the fault is ours; what a stuck engine does to a drain is longhorn#6552",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b).AttachedTo(s.a))
			s.faults(func(f *model.Faults) { f.EngineStuck["data"] = true })
			s.ticket("data", "")
			s.advance(time.Hour)
			s.Expect(s.volume("data").Status.State).To(Equal(lh.VolumeDetaching))
			s.Expect(s.manager(s.a).Status.InstanceEngines).To(HaveLen(1))
			s.faults(func(f *model.Faults) { delete(f.EngineStuck, "data") })
			s.Expect(s.volume("data").Status.State).To(Equal(lh.VolumeDetached))
		},
	},
	{
		says: "a user's ticket has priority over the CSI driver's", source: "Longhorn k8s/pkg/apis/longhorn/v1beta2/volumeattachment.go, priorities",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b).AttachedTo(s.a))
			s.ticketOf("data", lh.AttachmentTicket{ID: "ui", Type: lh.AttacherAPI, NodeID: s.b})
			s.Expect(s.volume("data").Status.CurrentNodeID).To(Equal(s.b))
		},
	},
	{
		says: "a replica that fails makes the volume degraded, with the time", source: sourceVolume + ", ReconcileEngineReplicaState",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b, s.c).AttachedTo(s.a))
			s.faults(func(f *model.Faults) { f.RebuildStalls["*"] = true })
			s.Expect(s.SetSetting(s.ctx, model.SettingConcurrentRebuildPerNode, "0")).To(Succeed())
			s.Expect(s.FailReplica(s.ctx, "data", s.b)).To(Succeed())
			s.Expect(s.volume("data").Status).To(And(HaveField("Robustness", lh.RobustnessDegraded), HaveField("LastDegradedAt", Not(BeEmpty()))))
			s.Expect(s.replica("data", s.b).Spec.FailedAt).NotTo(BeEmpty())
			s.Expect(s.engine("data").Status.ReplicaModeMap).NotTo(HaveKey(s.replica("data", s.b).Name))
		},
	},
	{
		says: "a replica on a machine that stops fails after engine-replica-timeout", source: "Longhorn 1.12 documentation: settings, engine replica timeout",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b).AttachedTo(s.a))
			s.Expect(s.PowerOff(s.ctx, s.b)).To(Succeed())
			s.advance(7 * time.Second)
			s.Expect(s.volume("data").Status.Robustness).To(Equal(lh.RobustnessHealthy))
			s.advance(time.Second)
			s.Expect(s.volume("data").Status.Robustness).To(Equal(lh.RobustnessDegraded))
		},
	},
	{
		says: "a volume whose node is gone is unknown and stays attached until nobody wants it there", source: "Longhorn tests: docs/content/manual/pre-release/node/test-node-deletion.md; facts 1.1",
		loses: true,
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b, s.c).AttachedTo(s.a))
			s.Expect(s.SetReady(s.ctx, s.a, corev1.ConditionUnknown)).To(Succeed())
			s.Expect(s.volume("data").Status).To(And(
				HaveField("State", lh.VolumeAttached), HaveField("Robustness", lh.RobustnessUnknown), HaveField("CurrentNodeID", s.a)))
			s.ticket("data", s.b)
			s.Expect(s.volume("data").Status).To(And(
				HaveField("State", lh.VolumeAttached), HaveField("Robustness", lh.RobustnessDegraded), HaveField("CurrentNodeID", s.b)))
			s.Expect(s.replica("data", s.a).Spec.FailedAt).NotTo(BeEmpty())
		},
	},
	{
		says: "a volume without a replica that can be read is faulted, and comes back with its last one", source: sourceVolume + ", isAutoSalvageNeeded; facts 1.2, auto-salvage",
		loses: true,
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.b).AttachedTo(s.a))
			s.Expect(s.PowerOff(s.ctx, s.b)).To(Succeed())
			s.advance(time.Minute)
			s.Expect(s.volume("data").Status).To(And(HaveField("State", lh.VolumeDetached), HaveField("Robustness", lh.RobustnessFaulted)))
			s.Expect(s.Unusable()).To(Equal([]string{"data"}))
			s.Expect(s.PowerOn(s.ctx, s.b)).To(Succeed())
			s.Expect(s.volume("data").Status).To(And(HaveField("State", lh.VolumeAttached), HaveField("Robustness", lh.RobustnessHealthy)))
		},
	},
	{
		says: "without auto-salvage a faulted volume stays faulted", source: sourceVolume + ", isAutoSalvageNeeded; facts 1.2, auto-salvage",
		settings: map[string]string{model.SettingAutoSalvage: "false"}, loses: true,
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.b).AttachedTo(s.a))
			s.Expect(s.PowerOff(s.ctx, s.b)).To(Succeed())
			s.advance(time.Minute)
			s.Expect(s.PowerOn(s.ctx, s.b)).To(Succeed())
			s.advance(time.Hour)
			s.Expect(s.volume("data").Status.Robustness).To(Equal(lh.RobustnessFaulted))
		},
	},
	{
		says: "an instance manager that crashes takes its engine and replicas along, and the volume attaches again", source: sourceVolume + ", Reattaching the volume since engine of volume dead unexpectedly",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b, s.c).AttachedTo(s.a))
			s.faults(func(f *model.Faults) { f.RebuildStalls["*"] = true })
			s.Expect(s.CrashInstanceManager(s.ctx, s.a, lh.DataEngineV1)).To(Succeed())
			s.Expect(s.volume("data").Status).To(And(HaveField("State", lh.VolumeAttached), HaveField("Robustness", lh.RobustnessDegraded)))
			s.Expect(s.mode("data", s.a)).To(Equal(lh.ModeWO))
			s.Expect(s.manager(s.a).Status.CurrentState).To(Equal(lh.ManagerRunning))
		},
	},
	{
		says: "a reboot ends what ran on the node", source: "Kubernetes: pods with restartPolicy Never; facts 1.1, instance manager pods",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b).AttachedTo(s.a))
			s.faults(func(f *model.Faults) { f.RebuildStalls["*"] = true })
			s.Expect(s.Reboot(s.ctx, s.b)).To(Succeed())
			s.Expect(s.volume("data").Status.Robustness).To(Equal(lh.RobustnessDegraded))
			s.faults(func(f *model.Faults) { delete(f.RebuildStalls, "*") })
			s.advance(time.Minute)
			s.Expect(s.volume("data").Status.Robustness).To(Equal(lh.RobustnessHealthy))
		},
	},
	{
		says: "a volume that many write is attached where its share manager runs, wherever its users are", source: "Longhorn controller/share_manager_controller.go; facts 1.1",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.b, s.c).Shared().AttachedTo(s.d))
			sm := &lh.ShareManager{}
			s.get("data", sm)
			s.Expect(sm.Status).To(And(HaveField("State", lh.ManagerRunning), HaveField("OwnerID", s.a)))
			s.Expect(s.volume("data").Status.CurrentNodeID).To(Equal(s.a))

			pod := &corev1.Pod{}
			s.get("share-manager-data", pod)
			s.Expect(pod.Spec.NodeName).To(Equal(s.a))
			s.Expect(s.Cordon(s.ctx, s.a, true)).To(Succeed())
			s.Expect(s.EvictPod(s.ctx, s.Namespace(), pod.Name)).To(Succeed())
			s.Expect(s.volume("data").Status.CurrentNodeID).To(Equal(s.b))
		},
	},
	{
		says: "best-effort locality brings a replica to the engine's node, and lets another go", source: sourceVolume + ", replenishReplicas with hardNodeAffinity, cleanupDataLocalityReplicas",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.b, s.c).Locality(lh.DataLocalityBestEffort).AttachedTo(s.a))
			s.advance(time.Minute)
			s.Expect(s.on("data")).To(And(HaveLen(2), ContainElement(s.a)))
			s.Expect(s.volume("data").Status.Robustness).To(Equal(lh.RobustnessHealthy))
		},
	},
	{
		says: "auto-balance spreads replicas that share a node when there is another one", source: sourceVolume + ", getReplicaCountForAutoBalanceNode; facts 1.2, replica-auto-balance",
		settings: map[string]string{model.SettingReplicaAutoBalance: lh.AutoBalanceLeastEffort, model.SettingReplicaSoftAffinity: "true"},
		check: func(s *subject) {
			s.Expect(s.PatchNode(s.ctx, s.a, func(spec *lh.NodeSpec) {
				spec.Disks["second"] = lh.DiskSpec{Type: lh.DiskFilesystem, Path: "/var/mnt/second", AllowScheduling: true}
			})).To(Succeed())
			n := s.node(s.a)
			for name := range n.Spec.Disks {
				if name != "second" {
					s.create(longhornsim.NewVolume("data").On(s.a+"/"+name, s.a+"/second").AttachedTo(s.a))
				}
			}
			s.advance(time.Minute)
			s.Expect(s.on("data")).To(HaveLen(2))
			s.Expect(s.on("data")[0]).NotTo(Equal(s.on("data")[1]))
		},
	},
	{
		says: "a volume keeps the replicas it has when it wants fewer, without auto-balance", source: sourceVolume + ", cleanupAutoBalancedReplicas",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b, s.c).AttachedTo(s.a))
			v := s.volume("data")
			v.Spec.NumberOfReplicas = 2
			s.Expect(s.Client().Update(s.ctx, v)).To(Succeed())
			s.advance(time.Minute)
			s.Expect(s.on("data")).To(HaveLen(3))
		},
	},
	{
		says: "a pod has its volume attached by Kubernetes, and the volume names claim and pod", source: "facts 1.1, kubernetesStatus; Kubernetes: external-attacher",
		check: func(s *subject) {
			namespace := s.namespace("app")
			s.create(longhornsim.NewVolume("data").On(s.a, s.b).Claim(namespace, "pg"))
			pod, err := s.Workload(s.ctx, namespace, "pg-0", s.a, "pg")
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(s.volume("data").Status).To(And(HaveField("CurrentNodeID", s.a), HaveField("KubernetesStatus", And(
				HaveField("Namespace", namespace), HaveField("PVCName", "pg"), HaveField("WorkloadsStatus", HaveLen(1))))))

			attachment := s.attachment("data")
			s.Expect(attachment.Status.Attached).To(BeTrue())

			s.Expect(s.EvictPod(s.ctx, namespace, pod.Name)).To(Succeed())
			s.Expect(s.volume("data").Status.State).To(Equal(lh.VolumeDetached))
			s.Expect(s.attachment("data")).To(BeNil())
		},
	},
	{
		says: "a volume that is deleted takes its engine and replicas along", source: sourceVolume + ", syncVolume",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b).AttachedTo(s.a))
			s.Expect(s.Client().Delete(s.ctx, s.volume("data"))).To(Succeed())
			s.settle()
			s.Expect(s.replicas("data")).To(BeEmpty())
			s.Expect(s.manager(s.a).Status.InstanceEngines).To(BeEmpty())
		},
	},
}

// ticket has the CSI driver want the volume on a node and nowhere else; no node is none.
func (s *subject) ticket(volume, node string) {
	if node == "" {
		s.ticketOf(volume)

		return
	}

	s.ticketOf(volume, lh.AttachmentTicket{ID: "ticket", Type: lh.AttacherCSI, NodeID: node})
}

func (s *subject) ticketOf(volume string, tickets ...lh.AttachmentTicket) {
	va := &lh.VolumeAttachment{}
	s.get(volume, va)

	if len(tickets) != 1 || tickets[0].Type == lh.AttacherCSI {
		va.Spec.AttachmentTickets = nil
	}

	for _, ticket := range tickets {
		if va.Spec.AttachmentTickets == nil {
			va.Spec.AttachmentTickets = map[string]lh.AttachmentTicket{}
		}

		va.Spec.AttachmentTickets[ticket.ID] = ticket
	}

	s.Expect(s.Client().Update(s.ctx, va)).To(Succeed())
	s.settle()
}

// attachment is Kubernetes' own of a volume's PersistentVolume, or nil.
func (s *subject) attachment(volume string) *storagev1.VolumeAttachment {
	var list storagev1.VolumeAttachmentList
	s.Expect(s.Client().List(s.ctx, &list, &client.ListOptions{})).To(Succeed())

	for _, attachment := range list.Items {
		if pv := attachment.Spec.Source.PersistentVolumeName; pv != nil && *pv == s.PersistentVolume(volume) {
			return &attachment
		}
	}

	return nil
}

// Unusable are the volumes that have no copy that can be read.
func (s *subject) Unusable() []string {
	state, err := s.State(s.ctx)
	s.Expect(err).NotTo(HaveOccurred())

	return state.Unusable()
}
