// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
)

// syncEngineImages deploys the engine's program to every node that works. Source: controller/engine_image_controller.go.
func (s *State) syncEngineImages() {
	name := "ei-" + digest("engine-image", DefaultImage)[:8]

	ei := s.EngineImages[name]
	if ei == nil {
		ei = &lh.EngineImage{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.Namespace}, Spec: lh.EngineImageSpec{Image: DefaultImage},
		}
		s.EngineImages[name] = ei
	}

	deployed := map[string]bool{}
	all := true

	for _, n := range s.Nodes {
		deployed[n.Name] = s.alive(n.Name) && !s.downOrDeleted(n.Name) && !s.Reality.Faults.NoEngineImage[n.Name]
		all = all && deployed[n.Name]
	}

	ei.Status.NodeDeploymentMap, ei.Status.State = deployed, "deployed"
	if !all {
		ei.Status.State = "deploying"
	}
}

// imageReady is whether a volume's engine can run on a node. The v2 engine is part of its instance manager.
func (s *State) imageReady(node string, v *lh.Volume) bool {
	if v.Spec.DataEngine == lh.DataEngineV2 {
		return true
	}

	for _, ei := range s.EngineImages {
		if ei.Spec.Image == v.Spec.Image {
			return ei.Status.NodeDeploymentMap[node]
		}
	}

	return false
}

// syncBackingImages keeps the copies of backing images: as many as wanted, beside those that shall go, and one on each disk
// with a replica that needs it. Source: controller/backing_image_controller.go.
func (s *State) syncBackingImages() {
	for _, image := range sorted(s.BackingImages) {
		if image.Status.DiskFileStatusMap == nil {
			image.Status.DiskFileStatusMap = map[string]lh.BackingImageDiskFileStatus{}
		}

		if image.Spec.DiskFileSpecMap == nil {
			image.Spec.DiskFileSpecMap = map[string]lh.BackingImageDiskFileSpec{}
		}

		needed := map[string]bool{}

		for _, r := range s.Replicas {
			if r.Spec.BackingImage == image.Name && r.Spec.DiskID != "" {
				needed[r.Spec.DiskID] = true

				if _, there := image.Spec.DiskFileSpecMap[r.Spec.DiskID]; !there {
					image.Spec.DiskFileSpecMap[r.Spec.DiskID] = lh.BackingImageDiskFileSpec{DataEngine: image.Spec.DataEngine}
				}
			}
		}

		s.copyFiles(image)
		s.evictFiles(image, needed)
	}
}

// copyFiles brings the image to the disks that want it, from one that has it.
func (s *State) copyFiles(image *lh.BackingImage) {
	ready := false
	for uuid, file := range image.Status.DiskFileStatusMap {
		ready = ready || (file.State == lh.FileReady && s.diskReady(uuid))
	}

	for _, uuid := range sortedKeys(image.Spec.DiskFileSpecMap) {
		if image.Status.DiskFileStatusMap[uuid].State == lh.FileReady || !ready {
			continue
		}

		key := image.Name + "/" + uuid

		done, begun := s.Reality.moves[key]
		if !begun {
			done = s.Now.Add(s.copyTime(image.Status.RealSize))
			s.Reality.moves[key] = done
			image.Status.DiskFileStatusMap[uuid] = lh.BackingImageDiskFileStatus{State: lh.FileInProgress, LastStateTransitionTime: s.stamp()}
		}

		s.wakeAt(done)

		if !s.Now.Before(done) {
			delete(s.Reality.moves, key)
			image.Status.DiskFileStatusMap[uuid] = lh.BackingImageDiskFileStatus{
				State: lh.FileReady, Progress: 100, LastStateTransitionTime: s.stamp(),
			}
		}
	}
}

func (s *State) copyTime(bytes int64) time.Duration {
	return time.Duration(float64(bytes) / float64(max(1, s.Reality.Pace.RebuildBytes)) * float64(time.Second))
}

// evictFiles takes files from disks that shall have none, when there are enough others and no replica of the disk needs it.
func (s *State) evictFiles(image *lh.BackingImage, needed map[string]bool) {
	staying, ready, evicting := 0, 0, ""

	for _, uuid := range sortedKeys(image.Spec.DiskFileSpecMap) {
		if image.Spec.DiskFileSpecMap[uuid].EvictionRequested {
			evicting = uuid

			continue
		}

		staying++

		if image.Status.DiskFileStatusMap[uuid].State == lh.FileReady && s.diskReady(uuid) {
			ready++
		}
	}

	wanted := max(1, image.Spec.MinNumberOfCopies)

	switch {
	case evicting == "":
	case staying < wanted:
		if uuid := s.placeForFile(image); uuid != "" {
			image.Spec.DiskFileSpecMap[uuid] = lh.BackingImageDiskFileSpec{DataEngine: image.Spec.DataEngine}
		}
	case ready >= wanted && !needed[evicting]:
		delete(image.Spec.DiskFileSpecMap, evicting)
		delete(image.Status.DiskFileStatusMap, evicting)
	}
}

func (s *State) placeForFile(image *lh.BackingImage) string {
	for _, n := range sorted(s.Nodes) {
		if !s.nodeSchedulable(n) || !s.selects(image.Spec.NodeSelector, n.Spec.Tags, true) {
			continue
		}

		for _, name := range sortedKeys(n.Status.DiskStatus) {
			spec, status := n.Spec.Disks[name], n.Status.DiskStatus[name]
			_, has := image.Spec.DiskFileSpecMap[status.DiskUUID]

			if !has && spec.AllowScheduling && !spec.EvictionRequested && isTrue(status.Conditions, lh.ConditionSchedulable) &&
				s.selects(image.Spec.DiskSelector, spec.Tags, true) && s.space(spec, &status).refuses(image.Status.RealSize, image.Status.RealSize) == "" {
				return status.DiskUUID
			}
		}
	}

	return ""
}
