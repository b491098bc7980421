// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
)

// VolumeSpec describes a volume that has been there for a while.
type VolumeSpec struct {
	Name string
	Spec lh.VolumeSpec
	// Used is how many bytes are in use.
	Used int64
	// On are the places of replicas, or of shards: NODE/DISK, or NODE for its first disk. None: they are scheduled.
	On []string
	// Failed are the nodes of On whose replicas have failed.
	Failed []string
	// NeverUsed replicas have no data.
	NeverUsed bool
	// Tickets are who wants the volume attached.
	Tickets []lh.AttachmentTicket
	// MigratingTo is the node of a second engine.
	MigratingTo string
	// LinkedTo is the volume whose replicas these depend on.
	LinkedTo string
	// Status changes the status at the end.
	Status []func(*lh.VolumeStatus)
}

// AddVolume adds a volume as it was described. The webhook has its say.
func (s *State) AddVolume(spec VolumeSpec) error {
	if s.Volumes[spec.Name] != nil {
		return fmt.Errorf("there is one of this name already")
	}

	v := &lh.Volume{ObjectMeta: metav1.ObjectMeta{Name: spec.Name, Namespace: s.Namespace}, Spec: spec.Spec}
	if err := s.CheckVolume(nil, v); err != nil {
		return err
	}

	v.Status = lh.VolumeStatus{
		State: lh.VolumeDetached, Robustness: lh.RobustnessUnknown, CurrentImage: v.Spec.Image, ActualSize: spec.Used,
		IsStandby: v.Spec.Standby,
	}
	for _, change := range spec.Status {
		change(&v.Status)
	}

	s.Volumes[v.Name] = v
	s.ensureAttachment(v)

	for _, ticket := range spec.Tickets {
		if s.Nodes[ticket.NodeID] == nil {
			return fmt.Errorf("there is no node %s to attach it to", ticket.NodeID)
		}

		setTicket(s.VolumeAttachments[v.Name], ticket)
	}

	if len(spec.On) == 0 {
		v.Status.State = ""

		return nil
	}

	if sharded(v) {
		return s.addShards(v, spec.On)
	}

	e := s.newVolumeEngine(v)

	if spec.MigratingTo != "" {
		v.Status.CurrentMigrationNodeID = spec.MigratingTo
		second := e.DeepCopy()
		second.Name = v.Name + "-e-1"
		second.Spec.Active, second.Spec.NodeID = false, spec.MigratingTo
		s.Engines[second.Name] = second
	}

	for i, place := range spec.On {
		if err := s.addReplicaAt(v, e, spec, i, place); err != nil {
			return err
		}
	}

	return nil
}

func (s *State) addReplicaAt(v *lh.Volume, e *lh.Engine, spec VolumeSpec, i int, place string) error {
	node, uuid, at, err := s.placeNamed(place)
	if err != nil {
		return err
	}

	r := newReplica(v, e, "")
	r.Name, r.Namespace = v.Name+"-r-"+digest(v.Name, fmt.Sprint(i))[:8], s.Namespace
	r.Spec.NodeID, r.Spec.DiskID, r.Spec.DiskPath = node, uuid, at
	r.Spec.DataDirectoryName = v.Name + "-" + digest("directory", r.Name)[:8]
	setLabels(r)

	if !spec.NeverUsed {
		r.Spec.HealthyAt, r.Spec.LastHealthyAt = s.stamp(), s.stamp()
	}

	if slices.Contains(spec.Failed, node) {
		r.Spec.FailedAt, r.Spec.LastFailedAt = s.stamp(), s.stamp()
	}

	if spec.LinkedTo != "" {
		for _, source := range s.replicasOf(spec.LinkedTo) {
			if source.Spec.NodeID == node {
				r.Spec.LinkedCloneSrcReplicaName = source.Name
			}
		}
	}

	s.Replicas[r.Name] = r

	return nil
}

// placeNamed finds NODE/DISK, or the first disk of NODE.
func (s *State) placeNamed(place string) (node, uuid, at string, err error) {
	node, name, named := strings.Cut(place, "/")

	n := s.Nodes[node]
	if n == nil {
		return "", "", "", fmt.Errorf("there is no node %s", node)
	}

	names := sortedKeys(n.Status.DiskStatus)
	if !named && len(names) > 0 {
		name = names[0]
	}

	status := n.Status.DiskStatus[name]
	if status.DiskUUID == "" {
		return "", "", "", fmt.Errorf("node %s has no disk %q that was ready; it has %v", node, name, names)
	}

	return node, status.DiskUUID, n.Spec.Disks[name].Path, nil
}

func (s *State) addShards(v *lh.Volume, places []string) error {
	for i, place := range places {
		node, uuid, _, err := s.placeNamed(place)
		if err != nil {
			return err
		}

		name := fmt.Sprintf("%s-shard-%d", v.Name, i)
		s.Shards[name] = &lh.Shard{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.Namespace, Labels: map[string]string{labelVolume: v.Name}},
			Spec:       lh.ShardSpec{NodeID: node, DiskUUID: uuid, ShardGroupName: v.Name, SlotIndex: i},
			Status:     lh.ShardStatus{State: lh.ShardNormal},
		}
	}

	return nil
}

// AddBackingImage adds an image with a complete file at each place.
func (s *State) AddBackingImage(name string, size int64, places []string) error {
	image := &lh.BackingImage{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.Namespace},
		Spec: lh.BackingImageSpec{
			SourceType: "download", MinNumberOfCopies: max(1, len(places)), DataEngine: lh.DataEngineV1,
			DiskFileSpecMap: map[string]lh.BackingImageDiskFileSpec{},
		},
		Status: lh.BackingImageStatus{Size: size, RealSize: size, DiskFileStatusMap: map[string]lh.BackingImageDiskFileStatus{}},
	}

	for _, place := range places {
		_, uuid, _, err := s.placeNamed(place)
		if err != nil {
			return err
		}

		image.Spec.DiskFileSpecMap[uuid] = lh.BackingImageDiskFileSpec{DataEngine: lh.DataEngineV1}
		image.Status.DiskFileStatusMap[uuid] = lh.BackingImageDiskFileStatus{State: lh.FileReady, Progress: 100}
	}

	s.BackingImages[name] = image

	return nil
}
