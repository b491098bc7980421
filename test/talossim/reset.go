// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	runtimeres "github.com/siderolabs/talos/pkg/machinery/resources/runtime"
)

// Reset wipes what it is told to and turns the machine off, or boots it again. Source: Talos,
// internal/app/machined/internal/server/v1alpha1, Reset, and the sequence of the same name.
func (s *machineService) Reset(ctx context.Context, request *machine.ResetRequest) (*machine.ResetResponse, error) {
	b, n := s.boot, s.boot.node
	if err := b.mustBeConfigured("reset"); err != nil {
		return nil, err
	}
	labels, err := b.systemTargets(request)
	if err != nil {
		return nil, err
	}
	disks, err := n.userTargets(request)
	if err != nil {
		return nil, err
	}
	remark(ctx).say("mode=%s", request.GetMode())
	if request.GetGraceful() {
		remark(ctx).say("graceful")
	}
	if len(labels) > 0 {
		remark(ctx).say("wipes=%s", strings.Join(slices.Sorted(maps.Keys(labels)), ","))
	}
	next := n.start
	if !request.GetReboot() {
		next = n.turnOff
	}
	config := b.config()
	var first func(context.Context) error
	if request.GetGraceful() {
		first = b.leaveGracefully
	}
	actor := b.leave(resetSequence, runtimeres.MachineStageResetting, first, func(ctx context.Context) error {
		n.wipe(config, request.GetMode(), labels, disks)
		return next(ctx)
	})
	return &machine.ResetResponse{Messages: []*machine.Reset{{ActorId: actor}}}, nil
}

// leaveGracefully drains the Node, whatever comes of it, and leaves etcd, without which there is no reset.
func (b *boot) leaveGracefully(ctx context.Context) error {
	b.cordonAndDrain(ctx)
	if etcd := b.node.member(); etcd != nil && etcd.running() {
		return b.leaveEtcd(ctx)
	}
	return nil
}

// systemTargets are the labels of the system's partitions that are to be wiped; none means the whole disk.
func (b *boot) systemTargets(request *machine.ResetRequest) (map[string]bool, error) {
	if len(request.GetSystemPartitionsToWipe()) > 0 && request.GetMode() == machine.ResetRequest_USER_DISKS {
		return nil, errors.New("reset failed: invalid input, wipe mode USER_DISKS doesn't support SystemPartitionsToWipe parameter")
	}
	known := []string{
		constants.EFIPartitionLabel, constants.BIOSGrubPartitionLabel, constants.BootPartitionLabel,
		constants.MetaPartitionLabel, constants.StatePartitionLabel, constants.EphemeralPartitionLabel,
	}
	if b.config().dedicatedEtcd() {
		known = append(known, constants.EtcdDataVolumeID)
	}
	labels := map[string]bool{}
	for _, partition := range request.GetSystemPartitionsToWipe() {
		if !slices.Contains(known, partition.GetLabel()) {
			return nil, fmt.Errorf("failed to get volume status with label %q: not found", partition.GetLabel())
		}
		if partition.GetWipe() {
			labels[partition.GetLabel()] = true
		}
	}
	return labels, nil
}

// userTargets are the disks that are to be wiped beside the system's, by name.
func (n *Node) userTargets(request *machine.ResetRequest) (map[string]bool, error) {
	if len(request.GetUserDisksToWipe()) > 0 && request.GetMode() == machine.ResetRequest_SYSTEM_DISK {
		return nil, errors.New("reset failed: invalid input, wipe mode SYSTEM_DISK doesn't support UserDisksToWipe parameter")
	}
	disks := map[string]bool{}
	for _, path := range request.GetUserDisksToWipe() {
		i := slices.IndexFunc(n.disks(), func(d Disk) bool { return "/dev/"+d.Name == path })
		switch {
		case i < 0:
			return nil, fmt.Errorf("reset user disk failed: device %s wasn't found", path)
		case i == 0:
			return nil, fmt.Errorf("reset user disk failed: device %s is the system disk", path)
		}
		disks[n.disks()[i].Name] = true
	}
	return disks, nil
}

// wipe is what a reset does to the machine's disks.
func (n *Node) wipe(config *nodeConfig, mode machine.ResetRequest_WipeMode, labels, disks map[string]bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.disk.drop(func(p partition) bool { return disks[p.disk] })
	if mode == machine.ResetRequest_USER_DISKS {
		return
	}
	all := len(labels) == 0
	n.disk.wipe(all, labels, n.disks()[0].Name)
	data := labels[constants.EphemeralPartitionLabel]
	if config.dedicatedEtcd() {
		data = labels[constants.EtcdDataVolumeID]
	}
	if n.etcd != nil && (all || data) {
		_ = n.etcd.wipe() // if files are left, the next start fails on them
	}
}

// dedicatedEtcd tells whether etcd's data has a partition of its own, which 1.14 can give it.
func (c *nodeConfig) dedicatedEtcd() bool {
	if c == nil {
		return false
	}
	etcd, found := c.Volumes().ByName(constants.EtcdDataVolumeID)
	return found && (etcd.Provisioning().DiskSelector().IsPresent() || etcd.Provisioning().MinSize().IsPresent() || etcd.Provisioning().MaxSize().IsPresent())
}
