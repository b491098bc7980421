// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/storage"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// storageService answers the calls of StorageService.
type storageService struct {
	storage.UnimplementedStorageServiceServer

	boot *boot
}

func (s *storageService) Disks(context.Context, *emptypb.Empty) (*storage.DisksResponse, error) {
	list := &storage.Disks{}
	for i, disk := range s.boot.node.disks() {
		list.Disks = append(list.Disks, &storage.Disk{
			DeviceName: "/dev/" + disk.Name, Name: disk.Name, Size: disk.Size, Model: disk.Model, Serial: disk.Serial, SystemDisk: i == 0,
		})
	}
	return &storage.DisksResponse{Messages: []*storage.Disks{list}}, nil
}

// BlockDeviceWipe wipes disks and partitions that no volume of the configuration is on. All devices are looked at before
// the first is wiped. Source: Talos, internal/app/storaged.
func (s *storageService) BlockDeviceWipe(ctx context.Context, request *storage.BlockDeviceWipeRequest) (*storage.BlockDeviceWipeResponse, error) {
	b := s.boot
	if b.config() != nil && !rolesOf(ctx).Includes(role.Admin) {
		return nil, status.Error(codes.PermissionDenied, "not authorized: a reader wipes devices in maintenance mode only")
	}
	var names []string
	for _, device := range request.GetDevices() {
		if err := b.wipeable(device); err != nil {
			return nil, err
		}
		names = append(names, device.GetDevice())
	}
	remark(ctx).say("devices=%s", strings.Join(names, ","))
	for _, device := range request.GetDevices() {
		b.node.mu.Lock()
		b.node.disk.wipeDevice(device.GetDevice(), device.GetDropPartition())
		b.node.mu.Unlock()
	}
	b.publish()
	return &storage.BlockDeviceWipeResponse{Messages: []*storage.BlockDeviceWipe{{}}}, nil
}

// wipeable says why a device may not be wiped.
func (b *boot) wipeable(device *storage.BlockDeviceWipeDescriptor) error {
	n, name := b.node, device.GetDevice()
	var volumes []volume
	if c := b.config(); c != nil {
		volumes = n.provision(c)
	}
	n.mu.Lock()
	partitions := slices.Clone(n.disk.partitions)
	n.mu.Unlock()
	isDisk := slices.ContainsFunc(n.disks(), func(d Disk) bool { return d.Name == name })
	isPartition := slices.ContainsFunc(partitions, func(p partition) bool { return p.device() == name })
	switch {
	case !isDisk && !isPartition:
		return status.Errorf(codes.NotFound, "blockdevice %q not found", name)
	case device.GetDropPartition() && !isPartition:
		return status.Errorf(codes.FailedPrecondition, "blockdevice %q is not a partition", name)
	case device.GetSkipVolumeCheck():
		return nil
	}
	for _, v := range volumes {
		if v.on != nil && (v.on.device() == name || v.on.disk == name) {
			return status.Errorf(codes.FailedPrecondition, "blockdevice %q is in use by volume %q", name, v.id)
		}
	}
	return nil
}
