// SPDX-License-Identifier: Apache-2.0

package longhornsim_test

import (
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/maesh-dev/ichor/test/longhornsim"
	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
	"github.com/maesh-dev/ichor/test/longhornsim/model"
)

var evictionClaims = []claim{
	{
		says: "eviction makes the new copy before it takes the old one away", source: sourceEvict,
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b, s.c).AttachedTo(s.b))
			s.Expect(s.EvictNode(s.ctx, s.a)).To(Succeed())
			s.Expect(s.replica("data", s.a).Spec.EvictionRequested).To(BeTrue())
			s.Expect(s.on("data")).To(Equal([]string{s.a, s.b, s.c, s.d}))
			s.advance(5 * time.Second)
			s.Expect(s.mode("data", s.a)).To(Equal(lh.ModeRW))
			s.Expect(s.progress("data")).To(BeNumerically("~", 50, 11))
			s.advance(10 * time.Second)
			s.Expect(s.on("data")).To(Equal([]string{s.b, s.c, s.d}))
			s.Expect(s.volume("data").Status.Robustness).To(Equal(lh.RobustnessHealthy))
			_, status := s.disk(s.a)
			s.Expect(status.ScheduledReplica).To(BeEmpty())
		},
	},
	{
		says: "one disk is evicted, and another one of the node may take its replicas", source: "Longhorn scheduler/replica_scheduler.go, unusedNodesAfterEviction (longhorn#3076)",
		nodes: func(s *subject) []*longhornsim.NodeBuilder {
			return []*longhornsim.NodeBuilder{
				longhornsim.NewNode(s.a).Disk("one", 100<<30).Disk("two", 100<<30), longhornsim.NewNode(s.b).Disk("one", 100<<30),
			}
		},
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a+"/one", s.b).AttachedTo(s.b))
			s.Expect(s.PatchNode(s.ctx, s.a, func(spec *lh.NodeSpec) {
				disk := spec.Disks["one"]
				disk.AllowScheduling, disk.EvictionRequested = false, true
				spec.Disks["one"] = disk
			})).To(Succeed())
			s.advance(time.Minute)
			s.Expect(s.on("data")).To(Equal([]string{s.a, s.b}))
			s.Expect(s.node(s.a).Status.DiskStatus["one"].ScheduledReplica).To(BeEmpty())
			s.Expect(s.node(s.a).Status.DiskStatus["two"].ScheduledReplica).To(HaveLen(1))
		},
	},
	{
		says: "three nodes, three replicas and hard anti-affinity: eviction never ends, and takes nothing", source: "facts 1.4.6; longhorn#12870, maintainers on 2026-05-04",
		nodes: func(s *subject) []*longhornsim.NodeBuilder {
			return []*longhornsim.NodeBuilder{longhornsim.NewNode(s.a), longhornsim.NewNode(s.b), longhornsim.NewNode(s.c)}
		},
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b, s.c).AttachedTo(s.b))
			s.Expect(s.EvictNode(s.ctx, s.a)).To(Succeed())
			s.advance(24 * time.Hour)
			s.Expect(s.on("data")).To(Equal([]string{s.a, s.b, s.c}))
			s.Expect(lh.FindCondition(s.volume("data").Status.Conditions, lh.VolumeConditionScheduled)).
				To(HaveField("Reason", lh.ReasonReplicaSchedulingFailure))
		},
	},
	{
		says: "the only copy is evicted too, and never missing", source: sourceEvict,
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a).AttachedTo(s.b))
			s.Expect(s.EvictNode(s.ctx, s.a)).To(Succeed())
			s.advance(time.Minute)
			s.Expect(s.on("data")).To(HaveLen(1))
			s.Expect(s.on("data")).NotTo(ContainElement(s.a))
		},
	},
	{
		says: "a detached volume is attached for its eviction, and detached again", source: sourceEvictTicket,
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b, s.c))
			s.Expect(s.EvictNode(s.ctx, s.a)).To(Succeed())
			va := &lh.VolumeAttachment{}
			s.get("data", va)
			s.Expect(va.Spec.AttachmentTickets).To(HaveLen(1))
			for _, ticket := range va.Spec.AttachmentTickets {
				s.Expect(ticket.Type).To(Equal(lh.AttacherEviction))
			}
			s.Expect(s.volume("data").Status.State).To(Equal(lh.VolumeAttached))
			s.advance(time.Minute)
			s.Expect(s.on("data")).To(Equal([]string{s.b, s.c, s.d}))
			s.Expect(s.volume("data").Status.State).To(Equal(lh.VolumeDetached))
		},
	},
	{
		says: "a detached volume whose replica has no disk to go to stays detached for ever, and nothing says so", source: sourceEvictTicket + ", hasDiskCandidateForReplicaEviction",
		nodes: func(s *subject) []*longhornsim.NodeBuilder {
			return []*longhornsim.NodeBuilder{longhornsim.NewNode(s.a), longhornsim.NewNode(s.b)}
		},
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b))
			before := s.volume("data").Status.Conditions
			s.Expect(s.EvictNode(s.ctx, s.a)).To(Succeed())
			s.advance(24 * time.Hour)
			s.Expect(s.volume("data").Status).To(And(HaveField("State", lh.VolumeDetached), HaveField("Conditions", Equal(before))))
			s.Expect(s.on("data")).To(Equal([]string{s.a, s.b}))
		},
	},
	{
		says: "a ticket of the eviction that stays keeps the volume attached", source: "longhorn#9781, #9857; facts 1.10",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b))
			s.faults(func(f *model.Faults) { f.TicketStays["data"] = true })
			s.Expect(s.EvictNode(s.ctx, s.a)).To(Succeed())
			s.advance(time.Minute)
			s.Expect(s.on("data")).NotTo(ContainElement(s.a))
			s.Expect(s.volume("data").Status.State).To(Equal(lh.VolumeAttached))
		},
	},
	{
		says: "a degraded volume heals first", source: sourceEvict,
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b, s.c).AttachedTo(s.b))
			s.faults(func(f *model.Faults) { f.RebuildStalls["data"] = true })
			s.Expect(s.FailReplica(s.ctx, "data", s.c)).To(Succeed())
			s.Expect(s.EvictNode(s.ctx, s.a)).To(Succeed())
			s.advance(time.Hour)
			s.Expect(s.on("data")).To(Equal([]string{s.a, s.b, s.c}), "one copy is made at a time")
			s.faults(func(f *model.Faults) { delete(f.RebuildStalls, "data") })
			s.advance(time.Minute)
			s.Expect(s.on("data")).To(Equal([]string{s.b, s.c, s.d}))
		},
	},
	{
		says: "a strict-local volume is not evicted", source: "longhorn#8753, #8323; facts 1.4.5",
		check: func(s *subject) {
			s.create(
				longhornsim.NewVolume("data").On(s.a).Locality(lh.DataLocalityStrictLocal).AttachedTo(s.a),
				longhornsim.NewVolume("idle").On(s.a).Locality(lh.DataLocalityStrictLocal))
			s.Expect(s.EvictNode(s.ctx, s.a)).To(Succeed())
			s.advance(24 * time.Hour)
			s.Expect(s.on("data")).To(Equal([]string{s.a}))
			s.Expect(s.on("idle")).To(Equal([]string{s.a}))
			s.Expect(s.volume("idle").Status.State).To(Equal(lh.VolumeDetached))
		},
	},
	{
		says: "a limit of 0 rebuilds for a node evicts nothing", source: "facts 1.2, concurrent-replica-rebuild-per-node-limit; " + sourceReplenish,
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b).AttachedTo(s.b))
			s.Expect(s.SetSetting(s.ctx, model.SettingConcurrentRebuildPerNode, "0")).To(Succeed())
			s.Expect(s.EvictNode(s.ctx, s.a)).To(Succeed())
			s.advance(24 * time.Hour)
			s.Expect(s.on("data")).To(Equal([]string{s.a, s.b}))
		},
	},
	{
		says: "a volume that is restored, cloned, expanded or migrated is not evicted", source: sourceVolume + ", ReconcileEngineReplicaState; facts 1.4.5",
		check: func(s *subject) {
			s.create(
				longhornsim.NewVolume("restored").On(s.a, s.b).AttachedTo(s.b).Status(func(v *lh.VolumeStatus) { v.RestoreRequired = true }),
				longhornsim.NewVolume("cloned").On(s.a, s.b).AttachedTo(s.b).Status(func(v *lh.VolumeStatus) { v.CloneStatus.State = "initiated" }),
				longhornsim.NewVolume("expanded").On(s.a, s.b).AttachedTo(s.b).Status(func(v *lh.VolumeStatus) { v.ExpansionRequired = true }),
				longhornsim.NewVolume("migrated").On(s.a, s.b).AttachedTo(s.b).MigratingTo(s.c))
			s.Expect(s.EvictNode(s.ctx, s.a)).To(Succeed())
			s.advance(time.Hour)
			for _, volume := range []string{"restored", "cloned", "expanded", "migrated"} {
				s.Expect(s.on(volume)).To(Equal([]string{s.a, s.b}), volume)
			}
		},
	},
	{
		says: "a user who cancels has the replicas stay", source: sourceShouldEvict,
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b).AttachedTo(s.b))
			s.faults(func(f *model.Faults) { f.RebuildStalls["*"] = true })
			s.Expect(s.EvictNode(s.ctx, s.a)).To(Succeed())
			s.Expect(s.PatchNode(s.ctx, s.a, func(spec *lh.NodeSpec) { spec.AllowScheduling, spec.EvictionRequested = true, false })).To(Succeed())
			s.Expect(s.replica("data", s.a).Spec.EvictionRequested).To(BeFalse())
		},
	},
	{
		says: "a node that is not ready, and whose manager still runs, cancels its eviction", source: sourceShouldEvict,
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b).AttachedTo(s.b))
			s.faults(func(f *model.Faults) { f.RebuildStalls["*"] = true })
			s.Expect(s.EvictNode(s.ctx, s.a)).To(Succeed())
			s.Expect(s.SetReady(s.ctx, s.a, corev1.ConditionFalse)).To(Succeed())
			s.advance(11 * time.Second)
			s.Expect(s.replica("data", s.a).Spec.EvictionRequested).To(BeFalse())
		},
	},
	{
		says: "nothing is evicted from a node that is gone: what is lost is made anew from other copies", source: sourceShouldEvict + "; the node's own manager sets the flags, so that they stay",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("only").On(s.b).AttachedTo(s.c), longhornsim.NewVolume("data").On(s.a, s.b).AttachedTo(s.b))
			s.faults(func(f *model.Faults) { f.RebuildStalls["*"] = true })
			s.Expect(s.EvictNode(s.ctx, s.a)).To(Succeed())
			s.Expect(s.DeleteKubeNode(s.ctx, s.a)).To(Succeed())
			s.advance(9 * time.Second)
			s.Expect(s.replica("data", s.a).Spec).To(And(HaveField("EvictionRequested", true), HaveField("FailedAt", Not(BeEmpty()))))
			s.faults(func(f *model.Faults) { delete(f.RebuildStalls, "*") })
			s.advance(time.Minute)
			s.Expect(s.volume("data").Status.Robustness).To(Equal(lh.RobustnessHealthy))
		},
	},
	{
		says: "a backing image leaves with its node, after a copy of it was made", source: sourceNode + ", syncBackingImageEvictionRequested; facts 1.4; longhorn#11053, #10464",
		check: func(s *subject) {
			s.Expect(s.CreateBackingImage(s.ctx, "base", 1<<30, s.a)).To(Succeed())
			s.Expect(s.EvictNode(s.ctx, s.a)).To(Succeed())
			_, status := s.disk(s.a)
			s.Expect(status.ScheduledBackingImage).To(HaveKey("base"))
			s.advance(time.Minute)
			_, status = s.disk(s.a)
			s.Expect(status.ScheduledBackingImage).To(BeEmpty())

			image := &lh.BackingImage{}
			s.get("base", image)
			s.Expect(image.Status.DiskFileStatusMap).To(HaveLen(1))
		},
	},
	{
		says: "block-for-eviction evicts everything from a cordoned node, and takes it back with the cordon", source: sourceShouldEvict,
		settings: map[string]string{model.SettingNodeDrainPolicy: model.DrainBlockForEviction},
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b).AttachedTo(s.b))
			s.faults(func(f *model.Faults) { f.RebuildStalls["*"] = true })
			s.Expect(s.Cordon(s.ctx, s.a, true)).To(Succeed())
			s.Expect(s.replica("data", s.a).Spec.EvictionRequested).To(BeTrue())
			s.Expect(s.node(s.a).Status.AutoEvicting).To(BeTrue())
			s.Expect(s.Cordon(s.ctx, s.a, false)).To(Succeed())
			s.Expect(s.replica("data", s.a).Spec.EvictionRequested).To(BeFalse())
			s.Expect(s.node(s.a).Status.AutoEvicting).To(BeFalse())
		},
	},
	{
		says: "block-for-eviction-if-contains-last-replica evicts only what has no protected copy elsewhere", source: sourceShouldEvict,
		settings: map[string]string{model.SettingNodeDrainPolicy: model.DrainBlockForEvictionIfLastR},
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("safe").On(s.a, s.b).AttachedTo(s.b), longhornsim.NewVolume("only").On(s.a).AttachedTo(s.b))
			s.faults(func(f *model.Faults) { f.RebuildStalls["*"] = true })
			s.Expect(s.Cordon(s.ctx, s.a, true)).To(Succeed())
			s.Expect(s.replica("safe", s.a).Spec.EvictionRequested).To(BeFalse())
			s.Expect(s.replica("only", s.a).Spec.EvictionRequested).To(BeTrue())
		},
	},
	{
		says: "the default policy evicts nothing", source: sourceShouldEvict,
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("only").On(s.a).AttachedTo(s.b))
			s.Expect(s.Cordon(s.ctx, s.a, true)).To(Succeed())
			s.Expect(s.replica("only", s.a).Spec.EvictionRequested).To(BeFalse())
		},
	},
}
