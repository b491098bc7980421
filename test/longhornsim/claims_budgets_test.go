// SPDX-License-Identifier: Apache-2.0

package longhornsim_test

import (
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/maesh-dev/ichor/test/longhornsim"
	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
	"github.com/maesh-dev/ichor/test/longhornsim/model"
)

// cordoned sets a drain policy, makes volumes, cordons node a and says whether its budget is still there.
func cordoned(s *subject, policy string, volumes ...*longhornsim.VolumeBuilder) bool {
	s.Expect(s.SetSetting(s.ctx, model.SettingNodeDrainPolicy, policy)).To(Succeed())
	s.faults(func(f *model.Faults) { f.RebuildStalls["*"] = true })
	s.create(volumes...)
	s.Expect(s.Cordon(s.ctx, s.a, true)).To(Succeed())

	return s.protected(s.a)
}

var budgetClaims = []claim{
	{
		says: "each instance manager has a budget of its name, for its pod, of which one must be available", source: sourceBudget + "; facts 1.1",
		check: func(s *subject) {
			budget, err := s.Budget(s.ctx, s.a, lh.DataEngineV1)
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(budget.Spec.MinAvailable.IntValue()).To(Equal(1))

			pod := &corev1.Pod{}
			s.get(budget.Name, pod)
			selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(selector.Matches(labelsOf(pod))).To(BeTrue())
			s.Expect(metav1.GetControllerOf(pod)).To(And(HaveField("Kind", "InstanceManager"), HaveField("Name", budget.Name)))
			s.Expect(pod.Spec).To(And(HaveField("RestartPolicy", corev1.RestartPolicyNever), HaveField("NodeName", s.a)))
		},
	},
	{
		says: "the eviction of an instance manager's pod is refused while its budget is there", source: sourceBudget + "; Kubernetes: the eviction API",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("only").On(s.a))
			name := model.InstanceManagerName(s.a, lh.DataEngineV1)
			s.Expect(s.Cordon(s.ctx, s.a, true)).To(Succeed())
			s.Eventually(func() bool { return apierrors.IsTooManyRequests(s.EvictPod(s.ctx, s.Namespace(), name)) }, wait, "50ms").Should(BeTrue())

			s.Expect(s.EvictNode(s.ctx, s.a)).To(Succeed())
			s.advance(time.Minute)
			s.Expect(s.protected(s.a)).To(BeFalse())
			s.Eventually(func() error { return s.EvictPod(s.ctx, s.Namespace(), name) }, wait, "50ms").Should(Succeed())
			s.Expect(apierrors.IsNotFound(s.Client().Get(s.ctx, key(s, name), &corev1.Pod{}))).To(BeTrue(), "no pod starts on a cordoned node")
			s.Expect(s.Cordon(s.ctx, s.a, false)).To(Succeed())
			s.get(name, &corev1.Pod{})
			s.Expect(s.protected(s.a)).To(BeTrue())
		},
	},
	{
		says: "no policy lets the budget go while an engine runs on the node", source: sourceBudget + ", areAllVolumesDetachedFromNode",
		check: func(s *subject) {
			s.Expect(cordoned(s, model.DrainAlwaysAllow, longhornsim.NewVolume("data").On(s.b, s.c).AttachedTo(s.a))).To(BeTrue())
			s.ticket("data", "")
			s.Expect(s.protected(s.a)).To(BeFalse())
		},
	},
	{
		says: "always-allow lets the last copy go", source: sourceBudget,
		check: func(s *subject) {
			s.Expect(cordoned(s, model.DrainAlwaysAllow, longhornsim.NewVolume("only").On(s.a).AttachedTo(s.b))).To(BeFalse())
		},
	},
	{
		says: "the default policy blocks the last copy, attached or not", source: sourceBudget,
		check: func(s *subject) {
			s.Expect(cordoned(s, model.DrainBlockIfLastReplica, longhornsim.NewVolume("only").On(s.a))).To(BeTrue())
		},
	},
	{
		says: "the default policy lets a node go whose volumes have protected copies elsewhere", source: sourceBudget,
		check: func(s *subject) {
			s.Expect(cordoned(s, model.DrainBlockIfLastReplica, longhornsim.NewVolume("data").On(s.a, s.b).AttachedTo(s.b))).To(BeFalse())
		},
	},
	{
		says: "a replica that was never used blocks nothing", source: sourceBudget + "; longhorn#2673",
		check: func(s *subject) {
			s.Expect(cordoned(s, model.DrainBlockIfLastReplica, longhornsim.NewVolume("new").On(s.a).NeverUsed())).To(BeFalse())
		},
	},
	{
		says: "allow-if-replica-is-stopped lets the last copy of a detached volume go, and blocks that of an attached one", source: sourceBudget + "; facts 1.3",
		check: func(s *subject) {
			s.Expect(cordoned(s, model.DrainAllowIfStopped, longhornsim.NewVolume("only").On(s.a).AttachedTo(s.b))).To(BeTrue())
			s.ticket("only", "")
			s.Expect(s.protected(s.a)).To(BeFalse())
		},
	},
	{
		says: "block-for-eviction blocks while any replica names the node", source: sourceBudget,
		check: func(s *subject) {
			s.Expect(cordoned(s, model.DrainBlockForEviction, longhornsim.NewVolume("data").On(s.a, s.b).AttachedTo(s.b))).To(BeTrue())
			s.faults(func(f *model.Faults) { delete(f.RebuildStalls, "*") })
			s.advance(time.Minute)
			s.Expect(s.protected(s.a)).To(BeFalse())
		},
	},
	{
		says: "two nodes that are cordoned at once block each other", source: "facts 1.3 (a); Longhorn datastore/longhorn.go, ListVolumePDBProtectedHealthyReplicasRO",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b))
			s.faults(func(f *model.Faults) { f.OrphanEngine[s.a], f.OrphanEngine[s.b] = true, true })
			s.Expect(s.Cordon(s.ctx, s.a, true)).To(Succeed())
			s.Expect(s.Cordon(s.ctx, s.b, true)).To(Succeed())
			s.faults(func(f *model.Faults) { f.OrphanEngine = map[string]bool{} })
			s.Expect(s.protected(s.a)).To(BeTrue())
			s.Expect(s.protected(s.b)).To(BeTrue())
		},
	},
	{
		says: "a copy on a Kubernetes Node that is no more keeps the budgets of others for ever", source: "longhorn#10833, #12821 (open in 1.12.1); facts 1.3 (b)",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b, s.c))
			s.Expect(s.DeleteKubeNode(s.ctx, s.c)).To(Succeed())
			s.Expect(s.Cordon(s.ctx, s.a, true)).To(Succeed())
			s.advance(24 * time.Hour)
			s.Expect(s.protected(s.a)).To(BeTrue())
			s.Expect(s.Client().Delete(s.ctx, s.replica("data", s.c))).To(Succeed())
			s.settle()
			s.Expect(s.protected(s.a)).To(BeFalse())
		},
	},
	{
		says: "an engine of no volume keeps the budget", source: "longhorn#6552; facts 1.10",
		check: func(s *subject) {
			s.faults(func(f *model.Faults) { f.OrphanEngine[s.a] = true })
			s.Expect(s.Cordon(s.ctx, s.a, true)).To(Succeed())
			s.Expect(s.protected(s.a)).To(BeTrue())
		},
	},
	{
		says: "what a user has attached by hand keeps the budget, unless a setting detaches it", source: "longhorn#9183; facts 1.2",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.b, s.c).ManuallyAttachedTo(s.a))
			s.Expect(s.Cordon(s.ctx, s.a, true)).To(Succeed())
			s.Expect(s.protected(s.a)).To(BeTrue())
			s.Expect(s.SetSetting(s.ctx, model.SettingDetachManuallyAttached, "true")).To(Succeed())
			s.Expect(s.protected(s.a)).To(BeFalse())
		},
	},
	{
		says: "with the cluster autoscaler's setting only last copies are protected", source: sourceManager + ", syncInstanceManagerPDB; facts 1.2",
		settings: map[string]string{model.SettingClusterAutoscaler: "true"},
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("only").On(s.a))
			s.Expect(s.protected(s.a)).To(BeTrue())
			s.Expect(s.protected(s.b)).To(BeFalse())
		},
	},
	{
		says: "the CSI driver's helpers are protected while any volume is not detached", source: "facts 1.3: extra budgets",
		check: func(s *subject) {
			s.create(longhornsim.NewVolume("data").On(s.a, s.b).AttachedTo(s.a))
			s.get("csi-attacher", &policyv1.PodDisruptionBudget{})
			s.get("csi-provisioner", &policyv1.PodDisruptionBudget{})
			s.ticket("data", "")
			err := s.Client().Get(s.ctx, key(s, "csi-attacher"), &policyv1.PodDisruptionBudget{})
			s.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		},
	},
	{
		says: "no budget protects a shard", source: "facts 1.3: shards have no budget",
		check: func(s *subject) {
			s.Expect(cordoned(s, model.DrainBlockIfLastReplica, longhornsim.NewVolume("data").Sharded(1, s.a, s.b, s.c))).To(BeFalse())
		},
	},
}
