// SPDX-License-Identifier: Apache-2.0

package longhornsim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
	"github.com/maesh-dev/ichor/test/longhornsim/model"
)

// NodeBuilder describes a Kubernetes Node for AddNodes, where nothing else makes them.
type NodeBuilder struct {
	name        string
	labels      map[string]string
	annotations map[string]string
	disks       []diskOf
	tags        []string
}

type diskOf struct {
	name string
	size int64
	spec lh.DiskSpec
}

// NewNode begins with a node that is ready. Without Disk it has what Longhorn gives to a new node.
func NewNode(name string) *NodeBuilder {
	return &NodeBuilder{name: name, labels: map[string]string{}, annotations: map[string]string{}}
}

// Zone sets the node's zone.
func (b *NodeBuilder) Zone(zone string) *NodeBuilder { return b.Label(corev1.LabelTopologyZone, zone) }

// Label adds a label to the Kubernetes Node.
func (b *NodeBuilder) Label(key, value string) *NodeBuilder {
	b.labels[key] = value

	return b
}

// Annotation adds an annotation to the Kubernetes Node.
func (b *NodeBuilder) Annotation(key, value string) *NodeBuilder {
	b.annotations[key] = value

	return b
}

// Disk adds a disk with tags, at /var/mnt/NAME.
func (b *NodeBuilder) Disk(name string, size int64, tags ...string) *NodeBuilder {
	b.disks = append(b.disks, diskOf{name: name, size: size, spec: lh.DiskSpec{
		Type: lh.DiskFilesystem, Path: "/var/mnt/" + name, AllowScheduling: true, Tags: tags,
	}})

	return b
}

// BlockDisk adds a disk for the v2 data engine, at /dev/NAME.
func (b *NodeBuilder) BlockDisk(name string, size int64) *NodeBuilder {
	b.disks = append(b.disks, diskOf{name: name, size: size, spec: lh.DiskSpec{
		Type: lh.DiskBlock, Path: "/dev/" + name, AllowScheduling: true,
	}})

	return b
}

// Tags adds tags to the Longhorn node.
func (b *NodeBuilder) Tags(tags ...string) *NodeBuilder {
	b.tags = append(b.tags, tags...)

	return b
}

// AddNodes makes Kubernetes Nodes with the labels of Options.NodeLabels, and the Longhorn nodes that follow.
func (s *Sim) AddNodes(ctx context.Context, nodes ...*NodeBuilder) error {
	for _, b := range nodes {
		for _, d := range b.disks {
			s.SetDisk(b.name, d.spec.Path, d.size)
		}

		if err := s.createNode(ctx, b); err != nil {
			return fmt.Errorf("node %s: %w", b.name, err)
		}
	}

	// A node that is new has been seen by Longhorn before anybody can change its disks.
	if err := s.Settle(ctx); err != nil {
		return err
	}

	return s.change(ctx, func(state *model.State) error {
		for _, b := range nodes {
			n := state.Nodes[b.name]
			if n == nil {
				return fmt.Errorf("node %s: Longhorn does not run on it: does it have the labels of Options.NodeLabels?", b.name)
			}

			n.Spec.Tags = append(n.Spec.Tags, b.tags...)
			slices.Sort(n.Spec.Tags)
			n.Spec.Tags = slices.Compact(n.Spec.Tags)

			if len(b.disks) > 0 {
				n.Spec.Disks = map[string]lh.DiskSpec{}
			}

			for _, d := range b.disks {
				n.Spec.Disks[d.name] = d.spec
			}
		}

		return nil
	})
}

func (s *Sim) createNode(ctx context.Context, b *NodeBuilder) error {
	kube := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: b.name, Labels: map[string]string{corev1.LabelHostname: b.name}, Annotations: b.annotations},
		Spec:       corev1.NodeSpec{ProviderID: "sim:///" + strings.ToLower(b.name)},
	}

	for _, labels := range []map[string]string{s.options.NodeLabels, b.labels} {
		maps.Copy(kube.Labels, labels)
	}

	if err := s.user.Create(ctx, kube); err != nil {
		return err
	}

	patch := client.MergeFrom(kube.DeepCopy())
	kube.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
		LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}}
	kube.Status.NodeInfo.BootID = "boot-1"

	return s.user.Status().Patch(ctx, kube, patch)
}
