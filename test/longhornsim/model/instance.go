// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
)

// Labels of Longhorn's pods.
const (
	LabelComponent           = "longhorn.io/component"
	LabelNode                = "longhorn.io/node"
	LabelInstanceManagerType = "longhorn.io/instance-manager-type"
	LabelDataEngine          = "longhorn.io/data-engine"
	LabelShareManager        = "longhorn.io/share-manager"
	LabelManagedBy           = "longhorn.io/managed-by"

	ComponentInstanceManager = "instance-manager"
	ComponentShareManager    = "share-manager"

	instanceManagerImage = "longhornio/longhorn-instance-manager:v1.12.1"
)

// InstanceManagerName is the name of a node's instance manager, of its pod and of its disruption budget.
func InstanceManagerName(node string, engine lh.DataEngine) string {
	return "instance-manager-" + digest("instance-manager", node, string(engine))[:32]
}

func instanceManagerLabels(node string, engine lh.DataEngine) map[string]string {
	return map[string]string{
		LabelComponent: ComponentInstanceManager, LabelNode: node, LabelInstanceManagerType: lh.InstanceManagerAllInOne,
		LabelDataEngine: string(engine), LabelManagedBy: "longhorn-manager",
	}
}

// syncInstanceManagers keeps an instance manager, with its pod, for each node and data engine. Source:
// controller/node_controller.go, syncInstanceManagers; controller/instance_manager_controller.go, syncStatusWithPod and handlePod.
func (s *State) syncInstanceManagers() {
	for _, n := range sorted(s.Nodes) {
		if !s.managerUp(n.Name) {
			continue
		}

		for _, engine := range []lh.DataEngine{lh.DataEngineV1, lh.DataEngineV2} {
			if name := InstanceManagerName(n.Name, engine); s.InstanceManagers[name] == nil && s.engineWanted(n.Name, engine) {
				s.InstanceManagers[name] = &lh.InstanceManager{
					ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.Namespace, Labels: instanceManagerLabels(n.Name, engine)},
					Spec: lh.InstanceManagerSpec{
						NodeID: n.Name, Type: lh.InstanceManagerAllInOne, DataEngine: engine, Image: instanceManagerImage,
					},
				}
			}
		}
	}

	for _, im := range sorted(s.InstanceManagers) {
		if s.Nodes[im.Spec.NodeID] == nil {
			delete(s.InstanceManagers, im.Name)
			delete(s.Pods, im.Name)
			delete(s.Budgets, im.Name)

			continue
		}

		s.syncInstanceManager(im)
	}
}

func (s *State) engineWanted(node string, engine lh.DataEngine) bool {
	if engine == lh.DataEngineV1 {
		return s.on(SettingV1DataEngine)
	}

	kube := s.KubeNodes[node]

	return s.on(SettingV2DataEngine) && kube != nil && kube.Labels[LabelDisableV2] != "true"
}

func (s *State) syncInstanceManager(im *lh.InstanceManager) {
	im.Status.OwnerID = im.Spec.NodeID

	if s.downOrDeleted(im.Spec.NodeID) {
		im.Status.CurrentState = lh.ManagerUnknown

		return
	}

	if !s.alive(im.Spec.NodeID) {
		return
	}

	pod := s.Pods[im.Name]

	switch {
	case pod != nil && pod.DeletionTimestamp.IsZero() && pod.Status.Phase != corev1.PodFailed:
		im.Status.CurrentState, im.Status.IP = lh.ManagerRunning, "pod-of-"+im.Spec.NodeID
	case pod != nil && pod.Status.Phase == corev1.PodFailed:
		s.Reality.Crash(im.Spec.NodeID, im.Spec.DataEngine)
		im.Status.CurrentState = lh.ManagerError
		delete(s.Pods, im.Name)
	default:
		// What runs in a pod ends with it.
		s.Reality.Crash(im.Spec.NodeID, im.Spec.DataEngine)

		im.Status.CurrentState = lh.ManagerError
		if pod != nil {
			return
		}

		// A pod that names its node would be started on a cordoned one too, so that no drain would ever end.
		if !s.cordoned(im.Spec.NodeID) && s.managerUp(im.Spec.NodeID) {
			s.Pods[im.Name] = s.newPod(im.Name, im.Spec.NodeID, instanceManagerImage, instanceManagerLabels(im.Spec.NodeID, im.Spec.DataEngine))
			im.Status.CurrentState = lh.ManagerStarting
		}
	}
}

func (s *State) newPod(name, node, image string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.Namespace, Labels: labels},
		Spec: corev1.PodSpec{
			NodeName: node, RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: ServiceAccount,
			Containers:  []corev1.Container{{Name: labels[LabelComponent], Image: image}},
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
			},
		},
	}
}

// ServiceAccount is that of Longhorn's pods, and who Longhorn itself is.
const ServiceAccount = "longhorn-service-account"

// instanceManagerReady is whether engines and replicas can be started on a node.
func (s *State) instanceManagerReady(node string, engine lh.DataEngine) bool {
	im := s.instanceManager(node, engine)

	return im != nil && im.Status.CurrentState == lh.ManagerRunning
}

// syncInstances starts and ends processes as their objects want it, and lists what runs where.
func (s *State) syncInstances() {
	for _, r := range sorted(s.Replicas) {
		if s.Volumes[r.Spec.VolumeName] == nil {
			s.deleteReplica(r)

			continue
		}

		setLabels(r)
		s.syncReplicaProcess(r)
	}

	for _, e := range sorted(s.Engines) {
		switch {
		case s.Volumes[e.Spec.VolumeName] == nil:
			s.Reality.Kill(e.Name)
			delete(s.Engines, e.Name)
		case e.Status.CurrentState == lh.InstanceRunning && !s.runs(e.Name) && s.alive(e.Spec.NodeID):
			e.Status.CurrentState = lh.InstanceError
		}
	}

	for name := range s.Reality.processes {
		if s.Replicas[name] == nil && s.Engines[name] == nil {
			s.Reality.Kill(name)
		}
	}

	for _, im := range s.InstanceManagers {
		s.listInstances(im)
	}
}

func (s *State) syncReplicaProcess(r *lh.Replica) {
	switch {
	case r.Spec.NodeID == "":
		r.Status.CurrentState = lh.InstanceStopped
	case !s.alive(r.Spec.NodeID):
		if s.downOrDeleted(r.Spec.NodeID) && r.Spec.DesireState == lh.InstanceRunning {
			r.Status.CurrentState = lh.InstanceUnknown
		}

		return
	case r.Spec.DesireState != lh.InstanceRunning:
		s.Reality.Kill(r.Name)
		r.Status.CurrentState = lh.InstanceStopped
	case !s.diskReady(r.Spec.DiskID):
		s.Reality.Kill(r.Name)
		r.Status.CurrentState = lh.InstanceError
	case s.runs(r.Name):
		r.Status.CurrentState = lh.InstanceRunning
	case r.Status.CurrentState == lh.InstanceRunning:
		r.Status.CurrentState = lh.InstanceError // it ran, and nobody has stopped it
	case r.Status.CurrentState != lh.InstanceError && s.instanceManagerReady(r.Spec.NodeID, r.Spec.DataEngine):
		s.Reality.processes[r.Name] = process{node: r.Spec.NodeID, engine: r.Spec.DataEngine}
		r.Status.CurrentState = lh.InstanceRunning
	}

	r.Status.OwnerID, r.Status.InstanceManagerName, r.Status.Started = r.Spec.NodeID, "", s.runs(r.Name)
	if s.runs(r.Name) {
		r.Status.InstanceManagerName = InstanceManagerName(r.Spec.NodeID, r.Spec.DataEngine)
	}
}

// listInstances fills in the instance manager's lists. Those of one of which nothing is known stay as they are.
func (s *State) listInstances(im *lh.InstanceManager) {
	if im.Status.CurrentState == lh.ManagerUnknown || !s.alive(im.Spec.NodeID) {
		return
	}

	im.Status.InstanceEngines, im.Status.InstanceReplicas = nil, nil

	add := func(list *map[string]lh.InstanceProcess, name, instanceType string) {
		if *list == nil {
			*list = map[string]lh.InstanceProcess{}
		}

		(*list)[name] = lh.InstanceProcess{
			Spec:   lh.InstanceProcessSpec{Name: name, DataEngine: im.Spec.DataEngine},
			Status: lh.InstanceProcessStatus{State: lh.InstanceRunning, Type: instanceType},
		}
	}

	for name, p := range s.Reality.processes {
		if p.node != im.Spec.NodeID || p.engine != im.Spec.DataEngine {
			continue
		}

		if s.Engines[name] != nil {
			add(&im.Status.InstanceEngines, name, "engine")
		} else {
			add(&im.Status.InstanceReplicas, name, "replica")
		}
	}

	if s.Reality.Faults.OrphanEngine[im.Spec.NodeID] && im.Spec.DataEngine == lh.DataEngineV1 {
		add(&im.Status.InstanceEngines, fmt.Sprintf("pvc-orphan-%s-e-0", digest("orphan", im.Spec.NodeID)[:8]), "engine")
	}
}
