// SPDX-License-Identifier: Apache-2.0

package model

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
)

// sidecars of the CSI driver whose pods are protected while any volume is not detached.
var sidecars = []string{"csi-attacher", "csi-provisioner"}

// syncBudgets keeps the disruption budgets. Source: controller/instance_manager_controller.go, syncInstanceManagerPDB;
// controller/volume_controller.go and controller/kubernetes_pdb_controller.go for the sidecars'.
func (s *State) syncBudgets() {
	for _, im := range sorted(s.InstanceManagers) {
		s.syncBudget(im)
	}

	attached := false
	for _, v := range s.Volumes {
		attached = attached || v.Status.State != lh.VolumeDetached
	}

	for _, name := range sidecars {
		if !attached {
			delete(s.Budgets, name)
		} else if s.Budgets[name] == nil {
			s.Budgets[name] = s.newBudget(name, map[string]string{"app": name})
		}
	}
}

func (s *State) syncBudget(im *lh.InstanceManager) {
	kube := s.KubeNodes[im.Spec.NodeID]
	if im.Status.CurrentState != lh.ManagerRunning || kube == nil {
		return
	}

	switch wanted := !kube.Spec.Unschedulable && !s.on(SettingClusterAutoscaler); {
	case !wanted && s.mayDeleteBudget(im):
		delete(s.Budgets, im.Name)
	case s.Budgets[im.Name] == nil && !kube.Spec.Unschedulable:
		s.Budgets[im.Name] = s.newBudget(im.Name, instanceManagerLabels(im.Spec.NodeID, im.Spec.DataEngine))
	}
}

// mayDeleteBudget is whether the pod of an instance manager may go: no engine runs on the node, under any policy, and what the
// policy wants of the replicas holds. Source: canDeleteInstanceManagerPDB.
func (s *State) mayDeleteBudget(im *lh.InstanceManager) bool {
	node := im.Spec.NodeID

	for _, other := range s.InstanceManagers {
		if other.Spec.NodeID == node && len(other.Status.InstanceEngines)+len(other.Status.InstanceEngineFrontends) > 0 {
			return false
		}
	}

	policy := s.setting(SettingNodeDrainPolicy, lh.DataEngineV1)
	if policy == DrainAlwaysAllow {
		return true
	}

	for _, r := range sorted(s.Replicas) {
		if r.Spec.NodeID != node {
			continue
		}

		if policy == DrainBlockForEviction {
			return false
		}

		stopped := r.Spec.DesireState == lh.InstanceStopped && r.Status.CurrentState == lh.InstanceStopped
		unused := r.Spec.HealthyAt == "" && r.Spec.FailedAt == ""

		if (policy == DrainAllowIfStopped && stopped) || unused {
			continue
		}

		if elsewhere, known := s.protectedElsewhere(r.Spec.VolumeName, node); !known || !elsewhere {
			return false
		}
	}

	return true
}

func (s *State) newBudget(name string, labels map[string]string) *policyv1.PodDisruptionBudget {
	one := intstr.FromInt32(1)

	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.Namespace, Labels: map[string]string{LabelManagedBy: "longhorn-manager"}},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}
}
