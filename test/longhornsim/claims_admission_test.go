// SPDX-License-Identifier: Apache-2.0

package longhornsim_test

import (
	"maps"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/maesh-dev/ichor/test/longhornsim"
	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
	"github.com/maesh-dev/ichor/test/longhornsim/model"
)

// eachDisk changes every disk of a node.
func eachDisk(spec *lh.NodeSpec, change func(*lh.DiskSpec)) {
	disks := maps.Clone(spec.Disks)
	for name, disk := range disks {
		change(&disk)
		disks[name] = disk
	}

	spec.Disks = disks
}

var admissionClaims = []claim{
	{
		says: "a node is evicted only if it takes no new replicas", source: sourceNodeHook,
		check: func(s *subject) {
			err := s.PatchNode(s.ctx, s.a, func(spec *lh.NodeSpec) { spec.EvictionRequested = true })
			s.invalid(err, "need to disable scheduling on node")
			s.Expect(s.EvictNode(s.ctx, s.a)).To(Succeed())
			err = s.PatchNode(s.ctx, s.a, func(spec *lh.NodeSpec) { spec.AllowScheduling = true })
			s.invalid(err, "cancel eviction to enable scheduling")
			s.Expect(s.PatchNode(s.ctx, s.a, func(spec *lh.NodeSpec) { spec.AllowScheduling, spec.EvictionRequested = true, false })).To(Succeed())
		},
	},
	{
		says: "a disk is evicted only if it takes no new replicas", source: sourceNodeHook,
		check: func(s *subject) {
			err := s.PatchNode(s.ctx, s.a, func(spec *lh.NodeSpec) { eachDisk(spec, func(d *lh.DiskSpec) { d.EvictionRequested = true }) })
			s.invalid(err, "need to disable scheduling on disk")
		},
	},
	{
		says: "no change of a node while the status of its disks lags behind", source: sourceNodeHook + "; longhorn#13494, #6487",
		check: func(s *subject) {
			s.faults(func(f *model.Faults) { f.DisksUnsynced[s.a] = true })
			s.Expect(s.PatchNode(s.ctx, s.a, func(spec *lh.NodeSpec) {
				spec.Disks["new"] = lh.DiskSpec{Type: lh.DiskFilesystem, Path: "/var/mnt/new", AllowScheduling: true}
			})).To(Succeed())
			s.later(s.EvictNode(s.ctx, s.a), "are being syncing and please retry later")
			s.faults(func(f *model.Faults) { delete(f.DisksUnsynced, s.a) })
			s.Expect(s.EvictNode(s.ctx, s.a)).To(Succeed())
		},
	},
	{
		says: "a change that was refused while disks were synchronized is granted later", source: sourceNodeHook,
		check: func(s *subject) {
			s.RefuseAsSyncing(3)
			for range 3 {
				s.later(s.EvictNode(s.ctx, s.a), "are being syncing and please retry later")
			}
			s.Expect(s.EvictNode(s.ctx, s.a)).To(Succeed())
		},
	},
	{
		says: "a webhook that does not answer refuses everything", source: "facts 1.5: failurePolicy Fail, connection refused during a roll",
		check: func(s *subject) {
			s.SetWebhookDown(true)
			err := s.EvictNode(s.ctx, s.a)
			s.Expect(apierrors.IsInternalError(err)).To(BeTrue(), "%v", err)
			s.SetWebhookDown(false)
			s.Expect(s.EvictNode(s.ctx, s.a)).To(Succeed())
		},
	},
	{
		says: "a disk is removed only if it is off and empty", source: sourceNodeHook,
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b))
			remove := func(spec *lh.NodeSpec) { spec.Disks = nil }
			s.invalid(s.PatchNode(s.ctx, s.a, remove), "remove all replicas first")
			s.Expect(s.PatchNode(s.ctx, s.a, func(spec *lh.NodeSpec) { eachDisk(spec, func(d *lh.DiskSpec) { d.AllowScheduling = false }) })).To(Succeed())
			s.invalid(s.PatchNode(s.ctx, s.a, remove), "remove all replicas first")

			s.Expect(s.PatchNode(s.ctx, s.c, func(spec *lh.NodeSpec) { eachDisk(spec, func(d *lh.DiskSpec) { d.AllowScheduling = false }) })).To(Succeed())
			s.Expect(s.PatchNode(s.ctx, s.c, remove)).To(Succeed())
			s.Expect(s.node(s.c).Status.DiskStatus).To(BeEmpty())
		},
	},
	{
		says: "a disk keeps its type, and two disks have two paths", source: sourceNodeHook,
		settings: map[string]string{model.SettingV2DataEngine: "true"},
		check: func(s *subject) {
			err := s.PatchNode(s.ctx, s.a, func(spec *lh.NodeSpec) { eachDisk(spec, func(d *lh.DiskSpec) { d.Type = lh.DiskBlock }) })
			s.invalid(err, "not allowed to change")
			err = s.PatchNode(s.ctx, s.a, func(spec *lh.NodeSpec) {
				spec.Disks["twin"] = lh.DiskSpec{Type: lh.DiskFilesystem, Path: "/var/lib/longhorn"}
			})
			s.invalid(err, "same path")
		},
	},
	{
		says: "tags are qualified names", source: sourceNodeHook,
		check: func(s *subject) {
			s.invalid(s.PatchNode(s.ctx, s.a, func(spec *lh.NodeSpec) { spec.Tags = []string{"not a tag"} }), "validating tags")
		},
	},
	{
		says: "a block disk needs the v2 engine", source: sourceNodeHook,
		check: func(s *subject) {
			err := s.PatchNode(s.ctx, s.a, func(spec *lh.NodeSpec) {
				spec.Disks["block"] = lh.DiskSpec{Type: lh.DiskBlock, Path: "/dev/vdb", AllowScheduling: true}
			})
			s.invalid(err, "v2 data engine is not enabled")
		},
	},
	{
		says: "a node that works cannot be deleted", source: sourceNodeHook + ", Delete (1.12.1)",
		check: func(s *subject) {
			s.Expect(s.EvictNode(s.ctx, s.a)).To(Succeed())
			s.invalid(s.Client().Delete(s.ctx, s.node(s.a)), "could not delete node")
		},
	},
	{
		says: "a node that is gone cannot be deleted while a replica names it", source: sourceNodeHook + ", Delete (1.12.1); longhorn#13494",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b))
			s.Expect(s.PatchNode(s.ctx, s.a, func(spec *lh.NodeSpec) { spec.AllowScheduling = false })).To(Succeed())
			s.Expect(s.DeleteKubeNode(s.ctx, s.a)).To(Succeed())
			s.invalid(s.Client().Delete(s.ctx, s.node(s.a)), "1 replica")
			s.Expect(s.Client().Delete(s.ctx, s.replica("data", s.a))).To(Succeed())
			s.settle()

			err := s.Client().Get(s.ctx, key(s, s.a), &lh.Node{})
			s.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		},
	},
	{
		says: "the last healthy replica cannot be deleted, and one of two can", source: sourceReplicaHook,
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b))
			s.Expect(s.Client().Delete(s.ctx, s.replica("data", s.a))).To(Succeed())
			s.settle()
			s.invalid(s.Client().Delete(s.ctx, s.replica("data", s.b)), "no other healthy replica available")
		},
	},
	{
		says: "a replica that is evicted does not count as another one", source: sourceReplicaHook,
		check: func(s *subject) {
			s.faults(func(f *model.Faults) { f.RebuildStalls["*"] = true })
			s.create(longhornsim.NewVolume("data").On(s.a, s.b).AttachedTo(s.b))
			s.Expect(s.EvictNode(s.ctx, s.a)).To(Succeed())
			s.invalid(s.Client().Delete(s.ctx, s.replica("data", s.b)), "no other healthy replica available")
		},
	},
	{
		says: "the source of a linked clone cannot be deleted", source: "facts 1.4.5 (1.12.1)",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b))
			s.create(longhornsim.NewVolume("clone").On(s.a).LinkedCloneOf("data"))
			s.invalid(s.Client().Delete(s.ctx, s.replica("data", s.a)), "linked clone")
		},
	},
	{
		says: "a strict-local volume has one replica, and attaches only to its node", source: sourceVolumeHook + "; " + sourceTicketHook,
		check: func(s *subject) {
			s.Expect(s.Create(s.ctx, longhornsim.NewVolume("two").On(s.a, s.b).Locality(lh.DataLocalityStrictLocal))).
				To(MatchError(ContainSubstring("should be 1 when data locality is strict-local")))
			s.create(longhornsim.NewVolume("data").On(s.a).Locality(lh.DataLocalityStrictLocal))

			va := &lh.VolumeAttachment{}
			s.get("data", va)
			va.Spec.AttachmentTickets = map[string]lh.AttachmentTicket{"x": {ID: "x", Type: lh.AttacherCSI, NodeID: s.b}}
			s.invalid(s.Client().Update(s.ctx, va), "to stay on the same node")
		},
	},
	{
		says: "a sharded volume has one replica in its spec", source: "facts 1.5 (1.12.1)",
		check: func(s *subject) {
			v := longhornsim.NewVolume("data").Sharded(1, s.a, s.b, s.c).Wants(3)
			s.Expect(s.Create(s.ctx, v)).To(MatchError(ContainSubstring("should be 1 when the data layout is sharded")))
		},
	},
	{
		says: "a volume does not shrink, and keeps its data engine", source: sourceVolumeHook,
		settings: map[string]string{model.SettingV2DataEngine: "true"},
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b))
			v := s.volume("data")
			v.Spec.Size /= 2
			s.invalid(s.Client().Update(s.ctx, v), "shrinking volume")

			v = s.volume("data")
			v.Spec.DataEngine = lh.DataEngineV2
			s.invalid(s.Client().Update(s.ctx, v), "changing data engine")
		},
	},
	{
		says: "a volume becomes strict-local only while it is detached", source: sourceVolumeHook + ", validateDataLocalityUpdate",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a).AttachedTo(s.a))
			v := s.volume("data")
			v.Spec.DataLocality = lh.DataLocalityStrictLocal
			s.invalid(s.Client().Update(s.ctx, v), "when volume is not detached")
		},
	},
	{
		says: "the API server itself refuses what is no value of a field", source: "Longhorn chart, crds.yaml: enumerations of v1beta2",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b))
			v := s.volume("data")
			v.Spec.DataLocality = "near"
			s.invalid(s.Client().Update(s.ctx, v), "Unsupported value")
		},
	},
	{
		says: "a setting has one of its values, and is not deleted", source: sourceSettingHook,
		check: func(s *subject) {
			s.invalid(s.SetSetting(s.ctx, model.SettingNodeDrainPolicy, "never"), "not a valid choice")
			s.invalid(s.SetSetting(s.ctx, model.SettingConcurrentRebuildPerNode, "-1"), "should be a number")
			s.invalid(s.SetSetting(s.ctx, model.SettingAutoSalvage, "maybe"), "should be true or false")
			s.invalid(s.SetSetting(s.ctx, "current-longhorn-version", "v9"), "read-only")

			setting := &lh.Setting{}
			s.get(model.SettingNodeDrainPolicy, setting)
			s.invalid(s.Client().Delete(s.ctx, setting), "can be modified but not deleted")

			unknown := &lh.Setting{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace(), Name: "unheard-of"}, Value: "true"}
			s.invalid(s.Client().Create(s.ctx, unknown), "not supported")
		},
	},
	{
		says: "a setting may have a value for each data engine", source: "facts 1.1 (1.10)",
		check: func(s *subject) {
			s.Expect(s.SetSetting(s.ctx, model.SettingEngineReplicaTimeout, `{"v1":"12","v2":"20"}`)).To(Succeed())
			s.invalid(s.SetSetting(s.ctx, model.SettingEngineReplicaTimeout, `{"v1":`), "no JSON")
		},
	},
	{
		says: "the key of a ticket is its ID", source: sourceTicketHook,
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b))

			va := &lh.VolumeAttachment{}
			s.get("data", va)
			va.Spec.AttachmentTickets = map[string]lh.AttachmentTicket{"x": {ID: "y", Type: lh.AttacherCSI, NodeID: s.b}}
			s.invalid(s.Client().Update(s.ctx, va), "inconsistent attachment ticket ID")
		},
	},
}
