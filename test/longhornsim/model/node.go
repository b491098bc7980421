// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
)

// What a Kubernetes Node says about its disks.
const (
	LabelCreateDefaultDisk = "node.longhorn.io/create-default-disk"
	LabelDisableV2         = "node.longhorn.io/disable-v2-data-engine"
	AnnotationDisks        = "node.longhorn.io/default-disks-config"
	AnnotationTags         = "node.longhorn.io/default-node-tags"
)

// notReadyGrace is how long a kubelet that says it is not ready is given to mend (longhorn#7302; node_controller.go,
// ignoreKubeletNotReadyTime).
const notReadyGrace = 10 * time.Second

// syncNodes keeps a Longhorn node for each Kubernetes Node that Longhorn runs on. Source: controller/node_controller.go,
// syncNode, and controller/kubernetes_node_controller.go.
func (s *State) syncNodes() {
	for _, kube := range sorted(s.KubeNodes) {
		if s.Nodes[kube.Name] == nil && s.managerUp(kube.Name) {
			s.Nodes[kube.Name] = s.newNode(kube)
		}
	}

	for _, n := range sorted(s.Nodes) {
		kube := s.KubeNodes[n.Name]
		if kube == nil {
			s.setNode(n, lh.ConditionReady, lh.ConditionFalse, lh.ReasonKubernetesNodeGone,
				fmt.Sprintf("Kubernetes node missing: node %s has been removed from the cluster", n.Name))

			// The controller of Kubernetes nodes deletes it; the webhook has a say in that too.
			if s.CheckNodeDeletion(n) == nil {
				s.deleteNode(n.Name)
			}

			continue
		}

		s.syncConditions(n, kube)

		n.Status.Region, n.Status.Zone = kube.Labels[corev1.LabelTopologyRegion], kube.Labels[corev1.LabelTopologyZone]

		if s.managerUp(n.Name) {
			s.syncDefaults(n, kube)
			s.syncDisks(n)
		}
	}
}

// deleteNode takes the instance managers along, which the Longhorn node owns.
func (s *State) deleteNode(name string) {
	delete(s.Nodes, name)

	for key, im := range s.InstanceManagers {
		if im.Spec.NodeID == name {
			delete(s.InstanceManagers, key)
			delete(s.Pods, key)
			delete(s.Budgets, key)
		}
	}
}

func (s *State) newNode(kube *corev1.Node) *lh.Node {
	n := &lh.Node{
		ObjectMeta: metav1.ObjectMeta{Name: kube.Name, Namespace: s.Namespace},
		Spec:       lh.NodeSpec{Name: kube.Name, AllowScheduling: true},
	}

	if !s.on(SettingCreateDefaultDiskLabeled) {
		n.Spec.Disks = s.defaultDisk(kube.Name)
	}

	return n
}

func (s *State) defaultDisk(node string) map[string]lh.DiskSpec {
	at := s.setting(SettingDefaultDataPath, lh.DataEngineV1)
	d, _, there := s.Reality.physical(node, at)

	if !there {
		return nil
	}

	return map[string]lh.DiskSpec{"default-disk-" + strings.ReplaceAll(d.uuid, "-", "")[:16]: {
		Type: lh.DiskFilesystem, Path: at, AllowScheduling: true,
	}}
}

// syncDefaults applies labels and annotations, as long as the node has no disks, or no tags.
func (s *State) syncDefaults(n *lh.Node, kube *corev1.Node) {
	if len(n.Spec.Disks) == 0 && s.on(SettingCreateDefaultDiskLabeled) {
		switch strings.ToLower(kube.Labels[LabelCreateDefaultDisk]) {
		case "true":
			n.Spec.Disks = s.defaultDisk(n.Name)
		case "config":
			n.Spec.Disks = s.annotatedDisks(n.Name, kube.Annotations[AnnotationDisks])
		}
	}

	if len(n.Spec.Tags) == 0 && kube.Annotations[AnnotationTags] != "" {
		var tags []string
		if json.Unmarshal([]byte(kube.Annotations[AnnotationTags]), &tags) == nil && validTags(tags) == nil {
			n.Spec.Tags = tags
		}
	}
}

// annotatedDisks reads the annotation. What is wrong with one disk makes Longhorn ignore all of it, and only log that.
// Source: types/types.go, CreateDisksFromAnnotation.
func (s *State) annotatedDisks(node, annotation string) map[string]lh.DiskSpec {
	var listed []struct {
		Name string `json:"name"`
		lh.DiskSpec
	}
	if json.Unmarshal([]byte(annotation), &listed) != nil {
		return nil
	}

	disks := map[string]lh.DiskSpec{}
	paths := map[string]bool{}

	for _, entry := range listed {
		d, size, there := s.Reality.physical(node, entry.Path)

		name := entry.Name
		if name == "" {
			name = "default-disk-" + strings.ReplaceAll(d.uuid, "-", "")[:16]
		}

		if entry.Type == "" {
			entry.Type = lh.DiskFilesystem
		}

		_, twice := disks[name]
		if !there || twice || paths[path.Clean(entry.Path)] || entry.StorageReserved > size || validTags(entry.Tags) != nil {
			return nil
		}

		paths[path.Clean(entry.Path)] = true
		disks[name] = entry.DiskSpec
	}

	return disks
}

func validTags(tags []string) error {
	for _, tag := range tags {
		if problems := validation.IsQualifiedName(tag); len(problems) > 0 {
			return fmt.Errorf("at least one error encountered while validating tags: tag %s: %s", tag, strings.Join(problems, ", "))
		}
	}

	return nil
}

func (s *State) syncConditions(n *lh.Node, kube *corev1.Node) {
	ready, reason, message := lh.ConditionTrue, "", fmt.Sprintf("Node %s is ready", n.Name)

	if s.Reality.Faults.ManagerDown[n.Name] {
		ready, reason, message = lh.ConditionFalse, lh.ReasonManagerPodDown,
			fmt.Sprintf("Node %s is down: manager pod is not running", n.Name)
	}

	for _, condition := range kube.Status.Conditions {
		switch condition.Type {
		case corev1.NodeReady:
			if condition.Status == corev1.ConditionTrue || s.notReadyForgiven(n.Name, condition.Status) {
				continue
			}

			ready, reason, message = lh.ConditionFalse, lh.ReasonKubernetesNodeNotReady,
				fmt.Sprintf("Kubernetes node %s not ready: %s", n.Name, condition.Reason)
		case corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeMemoryPressure, corev1.NodeNetworkUnavailable:
			if condition.Status == corev1.ConditionTrue {
				ready, reason, message = lh.ConditionFalse, lh.ReasonKubernetesNodePressure,
					fmt.Sprintf("Kubernetes node %s has pressure: %s", n.Name, condition.Type)
			}
		}
	}

	s.setNode(n, lh.ConditionReady, ready, reason, message)

	if s.on(SettingDisableSchedulingCordoned) && kube.Spec.Unschedulable {
		s.setNode(n, lh.ConditionSchedulable, lh.ConditionFalse, lh.ReasonKubernetesNodeCordoned, fmt.Sprintf("Node %s is cordoned", n.Name))
	} else {
		s.setNode(n, lh.ConditionSchedulable, lh.ConditionTrue, "", "")
	}
}

// notReadyForgiven is whether a kubelet that has just become not ready is still taken for ready. One that says nothing is not.
func (s *State) notReadyForgiven(node string, status corev1.ConditionStatus) bool {
	since := s.Reality.machines[node].notReady
	if status != corev1.ConditionFalse || since.IsZero() {
		return false
	}

	s.wakeAt(since.Add(notReadyGrace))

	return s.Now.Sub(since) < notReadyGrace
}

func (s *State) setNode(n *lh.Node, conditionType string, status lh.ConditionStatus, reason, message string) {
	n.Status.Conditions = lh.SetCondition(n.Status.Conditions,
		lh.Condition{Type: conditionType, Status: status, Reason: reason, Message: message}, s.stamp())
}

// selects is whether tags have everything that a selector wants. Source: types/types.go, IsSelectorsInTags.
func (s *State) selects(selector, tags []string, allowEmpty bool) bool {
	if len(selector) == 0 {
		return allowEmpty || len(tags) == 0
	}

	for _, wanted := range selector {
		if !slices.Contains(tags, wanted) {
			return false
		}
	}

	return true
}
