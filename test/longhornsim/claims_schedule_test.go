// SPDX-License-Identifier: Apache-2.0

package longhornsim_test

import (
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/maesh-dev/ichor/test/longhornsim"
	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
	"github.com/maesh-dev/ichor/test/longhornsim/model"
)

func labelsOf(pod *corev1.Pod) labels.Set { return pod.Labels }

// scheduled makes a new volume and returns the nodes of its replicas; "" is one without.
func scheduled(s *subject, b *longhornsim.VolumeBuilder) []string {
	s.create(b)

	return s.on("data")
}

func zones(s *subject, of ...string) []*longhornsim.NodeBuilder {
	nodes := []*longhornsim.NodeBuilder{}
	for i, name := range []string{s.a, s.b, s.c, s.d}[:len(of)] {
		nodes = append(nodes, longhornsim.NewNode(name).Zone(of[i]))
	}

	return nodes
}

func twoNodes(s *subject) []*longhornsim.NodeBuilder {
	return []*longhornsim.NodeBuilder{longhornsim.NewNode(s.a), longhornsim.NewNode(s.b)}
}

var scheduleClaims = []claim{
	{
		says: "replicas are on different nodes; one too many is not scheduled, and the volume says so", source: sourceScheduler + "; facts 1.2",
		nodes: twoNodes,
		check: func(s *subject) {
			s.Expect(scheduled(s, longhornsim.NewVolume("data"))).To(ConsistOf(s.a, s.b, ""))
			s.Expect(lh.FindCondition(s.volume("data").Status.Conditions, lh.VolumeConditionScheduled)).
				To(And(HaveField("Status", lh.ConditionFalse), HaveField("Reason", lh.ReasonReplicaSchedulingFailure)))
		},
	},
	{
		says: "a replica without a disk gets one as soon as there is one", source: sourceVolume + ", reconcileVolumeCondition",
		nodes: twoNodes,
		check: func(s *subject) {
			scheduled(s, longhornsim.NewVolume("data"))
			s.Expect(s.AddNodes(s.ctx, longhornsim.NewNode(s.c))).To(Succeed())
			s.Expect(s.on("data")).To(Equal([]string{s.a, s.b, s.c}))
		},
	},
	{
		says: "with soft anti-affinity replicas may share a node", source: sourceScheduler + "; facts 1.2; blackjid#6382",
		nodes: twoNodes, settings: map[string]string{model.SettingReplicaSoftAffinity: "true"},
		check: func(s *subject) {
			s.Expect(scheduled(s, longhornsim.NewVolume("data"))).To(ConsistOf(s.a, s.b, Or(Equal(s.a), Equal(s.b))))
		},
	},
	{
		says: "a volume overrides the setting for anti-affinity", source: sourceScheduler + ", getDiskCandidates",
		nodes: twoNodes, settings: map[string]string{model.SettingReplicaSoftAffinity: "true"},
		check: func(s *subject) {
			b := longhornsim.NewVolume("data").Spec(func(spec *lh.VolumeSpec) { spec.ReplicaSoftAntiAffinity = lh.Disabled })
			s.Expect(scheduled(s, b)).To(ConsistOf(s.a, s.b, ""))
		},
	},
	{
		says: "a zone without a replica comes first, and others are used when none is left", source: sourceScheduler + ", getDiskCandidates",
		nodes: func(s *subject) []*longhornsim.NodeBuilder { return zones(s, "z1", "z1", "z2") },
		check: func(s *subject) {
			s.Expect(scheduled(s, longhornsim.NewVolume("data").Wants(2))).To(ContainElement(s.c))
			s.create(longhornsim.NewVolume("more"))
			s.Expect(s.on("more")).To(Equal([]string{s.a, s.b, s.c}))
		},
	},
	{
		says: "hard anti-affinity of zones leaves a replica without a place", source: sourceScheduler + ", getDiskCandidates",
		settings: map[string]string{model.SettingReplicaZoneSoftAffinity: "false"},
		nodes:    func(s *subject) []*longhornsim.NodeBuilder { return zones(s, "z1", "z1", "z2") },
		check: func(s *subject) {
			s.Expect(scheduled(s, longhornsim.NewVolume("data"))).To(ContainElements("", s.c))
		},
	},
	{
		says: "nodes without a zone are one zone", source: sourceScheduler + ", getCurrentNodesAndZones",
		settings: map[string]string{model.SettingReplicaZoneSoftAffinity: "false"},
		check: func(s *subject) {
			s.Expect(scheduled(s, longhornsim.NewVolume("data").Wants(2))).To(ContainElement(""))
		},
	},
	{
		says: "hard anti-affinity of disks keeps two replicas off one disk", source: sourceScheduler + ", filterDisksWithMatchingReplicas",
		settings: map[string]string{model.SettingReplicaSoftAffinity: "true", model.SettingReplicaDiskSoftAffinity: "false"},
		nodes: func(s *subject) []*longhornsim.NodeBuilder {
			return []*longhornsim.NodeBuilder{longhornsim.NewNode(s.a).Disk("one", 100<<30).Disk("two", 100<<30)}
		},
		check: func(s *subject) {
			s.Expect(scheduled(s, longhornsim.NewVolume("data"))).To(ConsistOf(s.a, s.a, ""))
			s.Expect(s.node(s.a).Status.DiskStatus["one"].ScheduledReplica).To(HaveLen(1))
			s.Expect(s.node(s.a).Status.DiskStatus["two"].ScheduledReplica).To(HaveLen(1))
		},
	},
	{
		says: "nodes and disks have the tags that a volume selects", source: sourceScheduler + ", IsSelectorsInTags; facts 1.4.6",
		nodes: func(s *subject) []*longhornsim.NodeBuilder {
			return []*longhornsim.NodeBuilder{
				longhornsim.NewNode(s.a).Tags("storage").Disk("one", 100<<30, "ssd"),
				longhornsim.NewNode(s.b).Tags("storage").Disk("one", 100<<30),
				longhornsim.NewNode(s.c).Disk("one", 100<<30, "ssd"),
			}
		},
		check: func(s *subject) {
			s.Expect(scheduled(s, longhornsim.NewVolume("data").Selects([]string{"storage"}, []string{"ssd"}))).To(ConsistOf(s.a, "", ""))
		},
	},
	{
		says: "what is scheduled stays within the over-provisioning, less what is reserved", source: sourceScheduler + ", IsSchedulableToDisk; facts 1.4.6",
		nodes: func(s *subject) []*longhornsim.NodeBuilder {
			return []*longhornsim.NodeBuilder{longhornsim.NewNode(s.a).Disk("one", 100<<30)}
		},
		check: func(s *subject) {
			s.Expect(s.PatchNode(s.ctx, s.a, func(spec *lh.NodeSpec) {
				eachDisk(spec, func(d *lh.DiskSpec) { d.StorageReserved = 30 << 30 })
			})).To(Succeed())
			s.Expect(scheduled(s, longhornsim.NewVolume("data").Wants(1).Size(71<<30, 0))).To(Equal([]string{""}))
			s.Expect(s.SetSetting(s.ctx, model.SettingOverProvisioning, "200")).To(Succeed())
			s.Expect(s.on("data")).To(Equal([]string{s.a}))
		},
	},
	{
		says: "a quarter of a disk stays free", source: sourceScheduler + ", IsSchedulableToDisk; facts 1.2",
		nodes: func(s *subject) []*longhornsim.NodeBuilder { return twoNodes(s)[:1] },
		check: func(s *subject) {
			s.Expect(s.FillDisk(s.ctx, s.a, s.path(s.a), 76<<30)).To(Succeed())
			s.Expect(scheduled(s, longhornsim.NewVolume("data").Wants(1))).To(Equal([]string{""}))
			s.Expect(s.SetSetting(s.ctx, model.SettingMinimalAvailable, "10")).To(Succeed())
			s.Expect(s.on("data")).To(Equal([]string{s.a}))
		},
	},
	{
		says: "a node takes nothing that is cordoned, not ready, switched off, evicted, or without engine", source: sourceScheduler + ", ListSchedulableNodes and getNodeCandidates",
		check: func(s *subject) {
			s.Expect(s.Cordon(s.ctx, s.a, true)).To(Succeed())
			s.Expect(s.SetReady(s.ctx, s.b, corev1.ConditionUnknown)).To(Succeed())
			s.Expect(s.PatchNode(s.ctx, s.c, func(spec *lh.NodeSpec) { spec.AllowScheduling = false })).To(Succeed())
			s.faults(func(f *model.Faults) { f.NoEngineImage[s.d] = true })
			s.Expect(scheduled(s, longhornsim.NewVolume("data"))).To(ConsistOf("", "", ""))
		},
	},
	{
		says: "a v1 volume goes to file systems and a v2 volume to block disks", source: sourceScheduler + ", filterNodeDisksForReplica; facts 1.7",
		settings: map[string]string{model.SettingV2DataEngine: "true"},
		nodes: func(s *subject) []*longhornsim.NodeBuilder {
			return []*longhornsim.NodeBuilder{
				longhornsim.NewNode(s.a).Disk("files", 100<<30), longhornsim.NewNode(s.b).BlockDisk("vdb", 100<<30),
				longhornsim.NewNode(s.c).BlockDisk("vdb", 100<<30).Label(model.LabelDisableV2, "true"),
			}
		},
		check: func(s *subject) {
			s.Expect(scheduled(s, longhornsim.NewVolume("data").Engine(lh.DataEngineV2).Wants(2))).To(ConsistOf(s.b, ""))
			s.create(longhornsim.NewVolume("files").Wants(2))
			s.Expect(s.on("files")).To(ConsistOf(s.a, ""))
		},
	},
	{
		says: "new replicas go where most room is", unsourced: "Longhorn minimizes the imbalance of what is usable (scheduler/replica_scheduler.go, getDiskWithMostBalanceScore); the disk with most room does so in all but odd cases",
		nodes: func(s *subject) []*longhornsim.NodeBuilder {
			return []*longhornsim.NodeBuilder{longhornsim.NewNode(s.a).Disk("one", 50<<30), longhornsim.NewNode(s.b).Disk("one", 200<<30)}
		},
		check: func(s *subject) {
			s.Expect(scheduled(s, longhornsim.NewVolume("data").Wants(1))).To(Equal([]string{s.b}))
		},
	},
}

var rebuildClaims = []claim{
	{
		says: "a degraded volume waits for its failed replica before it makes a new one", source: sourceReplenish + "; facts 1.2, replica-replenishment-wait-interval",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b).AttachedTo(s.a))
			s.Expect(s.PowerOff(s.ctx, s.b)).To(Succeed())
			s.Expect(s.SetReady(s.ctx, s.b, corev1.ConditionUnknown)).To(Succeed())
			s.advance(9 * time.Minute)
			s.Expect(s.on("data")).To(Equal([]string{s.a, s.b}))
			s.advance(2 * time.Minute)
			s.Expect(s.on("data")).To(HaveLen(3))
			s.Expect(s.volume("data").Status.Robustness).To(Equal(lh.RobustnessHealthy))
		},
	},
	{
		says: "a failed replica that comes back is used again, and copies only what is different", source: sourceReplenish + ", CheckAndReuseFailedReplica",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b).AttachedTo(s.a))
			name := s.replica("data", s.b).Name
			s.Expect(s.PowerOff(s.ctx, s.b)).To(Succeed())
			s.advance(5 * time.Minute)
			s.Expect(s.PowerOn(s.ctx, s.b)).To(Succeed())
			s.advance(2 * time.Second)
			s.Expect(s.volume("data").Status.Robustness).To(Equal(lh.RobustnessHealthy))
			s.Expect(s.replica("data", s.b).Name).To(Equal(name))
		},
	},
	{
		says: "a new copy is made in the time that its bytes take, and shows its progress", source: "facts 1.1, rebuildStatus",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a).Wants(2).AttachedTo(s.a).Size(100<<30, 10<<30))
			s.advance(51 * time.Second)
			s.Expect(s.progress("data")).To(BeNumerically("~", 50, 1))
			s.advance(50 * time.Second)
			s.Expect(s.progress("data")).To(BeNumerically("<=", 99))
			s.advance(3 * time.Second)
			s.Expect(s.volume("data").Status.Robustness).To(Equal(lh.RobustnessHealthy))
		},
	},
	{
		says: "healthyAt is empty while a copy is made", source: "facts 1.1",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b).AttachedTo(s.a))
			s.faults(func(f *model.Faults) { f.RebuildStalls["data"] = true })
			s.Expect(s.FailReplica(s.ctx, "data", s.b)).To(Succeed())
			s.Expect(s.mode("data", s.b)).To(Equal(lh.ModeWO))
			s.Expect(s.replica("data", s.b).Spec).To(And(HaveField("HealthyAt", ""), HaveField("FailedAt", ""), HaveField("LastHealthyAt", Not(BeEmpty()))))
		},
	},
	{
		says: "a volume makes one copy at a time", source: sourceReplenish,
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a).Wants(3).AttachedTo(s.a))
			s.Expect(s.on("data")).To(HaveLen(2))
			s.advance(time.Minute)
			s.Expect(s.on("data")).To(HaveLen(3))
		},
	},
	{
		says: "a node makes as many copies at a time as the setting says", source: "facts 1.2, concurrent-replica-rebuild-per-node-limit; mitchross#2268",
		settings: map[string]string{model.SettingConcurrentRebuildPerNode: "1"},
		nodes:    twoNodes,
		check: func(s *subject) {
			s.faults(func(f *model.Faults) { f.RebuildStalls["first"] = true })
			s.create(longhornsim.NewVolume("first").On(s.a).Wants(2).AttachedTo(s.a))
			s.create(longhornsim.NewVolume("second").On(s.a).Wants(2).AttachedTo(s.a))
			s.advance(time.Hour)
			s.Expect(s.progress("second")).To(Equal(-1))
			s.faults(func(f *model.Faults) { delete(f.RebuildStalls, "first") })
			s.advance(time.Minute)
			s.Expect(s.volume("second").Status.Robustness).To(Equal(lh.RobustnessHealthy))
		},
	},
	{
		says: "places for rebuilding that leak stop it", source: "longhorn#8535, #13629; facts 1.10",
		nodes: twoNodes,
		check: func(s *subject) {
			s.faults(func(f *model.Faults) { f.RebuildSlotsTaken[s.b] = 5 })
			s.create(longhornsim.NewVolume("data").On(s.a).Wants(2).AttachedTo(s.a))
			s.advance(24 * time.Hour)
			s.Expect(s.volume("data").Status.Robustness).To(Equal(lh.RobustnessDegraded))
		},
	},
	{
		says: "a copy that is slow takes longer", unsourced: "the fault is ours",
		nodes: twoNodes,
		check: func(s *subject) {
			s.faults(func(f *model.Faults) { f.RebuildSlow["slow"] = 10 })
			s.create(longhornsim.NewVolume("slow").On(s.a).Wants(2).AttachedTo(s.a))
			s.advance(20 * time.Second)
			s.Expect(s.progress("slow")).To(BeNumerically("~", 19, 2))
			s.advance(2 * time.Minute)
			s.Expect(s.volume("slow").Status.Robustness).To(Equal(lh.RobustnessHealthy))
		},
	},
	{
		says: "a replica that fails while it is rebuilt is tried again after a minute, and given up after five times", source: sourceReplenish + ", FailedReplicaMaxRetryCount; Longhorn controller/volume_controller.go, backoff",
		nodes: twoNodes,
		check: func(s *subject) {
			s.faults(func(f *model.Faults) { f.RebuildFails["data"] = true })
			s.create(longhornsim.NewVolume("data").On(s.a, s.b).AttachedTo(s.a))
			name := s.replica("data", s.b).Name
			s.Expect(s.FailReplica(s.ctx, "data", s.b)).To(Succeed())
			s.advance(5 * time.Second)
			s.Expect(s.replica("data", s.b).Spec).To(And(HaveField("RebuildRetryCount", 1), HaveField("FailedAt", Not(BeEmpty()))))
			s.advance(time.Minute)
			s.Expect(s.replica("data", s.b).Spec.RebuildRetryCount).To(Equal(2))
			s.advance(8*time.Minute + time.Second)
			s.Expect(s.replicas("data")).NotTo(ContainElement(HaveField("Name", name)))
		},
	},
	{
		says: "detached volumes are not rebuilt, unless offline rebuilding is on", source: "longhorn#3619; facts 1.2, offline-replica-rebuilding",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b).FailedOn(s.b))
			s.advance(24 * time.Hour)
			s.Expect(s.replica("data", s.b).Spec.FailedAt).NotTo(BeEmpty())
			s.Expect(s.SetSetting(s.ctx, model.SettingOfflineRebuilding, "true")).To(Succeed())
			s.Expect(s.volume("data").Status.State).To(Equal(lh.VolumeAttached))
			s.advance(time.Hour)
			s.Expect(s.volume("data").Status.State).To(Equal(lh.VolumeDetached))
			s.Expect(s.replica("data", s.b).Spec).To(And(HaveField("FailedAt", ""), HaveField("HealthyAt", Not(BeEmpty()))))
		},
	},
	{
		says: "a failed replica is given up after the volume's timeout, if others are healthy", source: sourceVolume + ", cleanupCorruptedOrStaleReplicas",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b, s.c).StaleAfter(30 * time.Minute).AttachedTo(s.a))
			s.Expect(s.SetReady(s.ctx, s.b, corev1.ConditionUnknown)).To(Succeed())
			s.advance(29 * time.Minute)
			s.Expect(s.on("data")).To(ContainElement(s.b))
			s.advance(2 * time.Minute)
			s.Expect(s.on("data")).To(Equal([]string{s.a, s.c, s.d}))
		},
	},
	{
		says: "a v2 volume makes a new copy at once, and uses no failed one again", source: sourceReplenish + ": fast-replica-rebuild-enabled",
		settings: map[string]string{model.SettingV2DataEngine: "true"},
		nodes: func(s *subject) []*longhornsim.NodeBuilder {
			return []*longhornsim.NodeBuilder{
				longhornsim.NewNode(s.a).BlockDisk("vdb", 100<<30), longhornsim.NewNode(s.b).BlockDisk("vdb", 100<<30),
				longhornsim.NewNode(s.c).BlockDisk("vdb", 100<<30),
			}
		},
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").Engine(lh.DataEngineV2).On(s.a, s.b).AttachedTo(s.a))
			s.Expect(s.PowerOff(s.ctx, s.b)).To(Succeed())
			s.Expect(s.SetReady(s.ctx, s.b, corev1.ConditionUnknown)).To(Succeed())
			s.advance(time.Minute)
			s.Expect(s.on("data")).To(Equal([]string{s.a, s.c}))
			s.Expect(s.volume("data").Status.Robustness).To(Equal(lh.RobustnessHealthy))
		},
	},
}

var otherClaims = []claim{
	{
		says: "a sharded volume has pieces and no replicas, and bears the loss of as many as it has parity", source: "facts 1.1: dataLayout, shards, shardgroups (1.12.1)",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").Sharded(1, s.a, s.b, s.c).AttachedTo(s.d))
			group := &lh.ShardGroup{}
			s.get("data", group)
			s.Expect(group.Status).To(And(HaveField("State", lh.ShardGroupHealthy), HaveField("FailedCount", 0)))
			s.Expect(s.replicas("data")).To(BeEmpty())
			s.Expect(s.PowerOff(s.ctx, s.a)).To(Succeed())
			s.get("data", group)
			s.Expect(group.Status).To(And(HaveField("State", lh.ShardGroupDegraded), HaveField("FailedCount", 1)))
		},
	},
	{
		says: "a shard leaves a node that is evicted", source: "facts 1.1, shards: evictionRequested and evictingSlots (1.12.1)",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").Sharded(1, s.a, s.b, s.c))
			s.Expect(s.EvictNode(s.ctx, s.a)).To(Succeed())
			group := &lh.ShardGroup{}
			s.get("data", group)
			s.Expect(group.Status).To(And(HaveField("RebuildInProgress", true), HaveField("EvictingSlots", []int{0})))
			s.advance(time.Minute)
			shard := &lh.Shard{}
			s.get("data-shard-0", shard)
			s.Expect(shard.Spec.NodeID).To(Equal(s.d))
		},
	},
	{
		says: "the v2 engine cannot be switched off on a node that uses it", source: "Longhorn webhook/resources/kubernetesnode/validator.go",
		settings: map[string]string{model.SettingV2DataEngine: "true"},
		nodes: func(s *subject) []*longhornsim.NodeBuilder {
			return []*longhornsim.NodeBuilder{longhornsim.NewNode(s.a).BlockDisk("vdb", 100<<30)}
		},
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").Engine(lh.DataEngineV2).On(s.a))
			kube := &corev1.Node{}
			s.Expect(s.Client().Get(s.ctx, clusterKey(s.a), kube)).To(Succeed())
			kube.Labels[model.LabelDisableV2] = "true"
			s.invalid(s.Client().Update(s.ctx, kube), "cannot disable v2 data engine")
		},
	},
	{
		says: "a disk that is taken out fails its replicas, and they come back with it", source: sourceNode + ", NoDiskInfo; " + sourceReplenish,
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b).AttachedTo(s.a))
			s.Expect(s.PullDisk(s.ctx, s.b, s.path(s.b))).To(Succeed())
			s.advance(time.Second)
			s.Expect(s.volume("data").Status.Robustness).To(Equal(lh.RobustnessDegraded))
			s.Expect(s.PutDisk(s.ctx, s.b, s.path(s.b))).To(Succeed())
			s.advance(time.Minute)
			s.Expect(s.volume("data").Status.Robustness).To(Equal(lh.RobustnessHealthy))
		},
	},
}
