// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"
	blockapi "github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/block"
	"github.com/siderolabs/talos/pkg/machinery/cel"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
)

// Disk is a disk of a machine. The first one of a machine is the one that Talos is on.
type Disk struct {
	// Name is the device's, without /dev/: vda, nvme0n1.
	Name string
	// Size is in bytes.
	Size uint64

	// What selectors of configurations go by; all may be empty.
	Transport  string
	Model      string
	Serial     string
	Rotational bool
}

// gib is 2 to the power of 30.
const gib = 1 << 30

// defaultDisk is that of a machine whose options name none.
var defaultDisk = Disk{Name: "vda", Size: 20 * gib, Transport: "virtio"}

// Sizes of the partitions that Talos makes for itself. Source: Talos, pkg/machinery/constants and internal/pkg/partition.
const (
	efiSize   = 2200 << 20
	metaSize  = 1 << 20
	stateSize = 100 << 20
	// minimumSize is what a volume has at least if its configuration says nothing.
	minimumSize = 2 * gib
)

// partition is one of a disk.
type partition struct {
	// volume is the volume's ID, which is also the partition's label: EPHEMERAL, u-longhorn.
	volume     string
	disk       string
	index      int
	size       uint64
	filesystem block.FilesystemType
	encrypted  bool
	uuid       string
}

func (p partition) device() string {
	if last := p.disk[len(p.disk)-1]; last >= '0' && last <= '9' {
		return p.disk + "p" + strconv.Itoa(p.index)
	}
	return p.disk + strconv.Itoa(p.index)
}

// volume is one that the configuration asks for and what became of it.
type volume struct {
	id string
	// target is where it is mounted; empty for one that is not.
	target string
	kind   block.VolumeType
	on     *partition
	// failed is why there is none.
	failed error
}

func (n *Node) disks() []Disk {
	if len(n.options.Disks) == 0 {
		return []Disk{defaultDisk}
	}
	return n.options.Disks
}

// provision finds or makes the volumes that a configuration asks for. What was made once stays where it is, whatever a
// later configuration says, until it is wiped.
func (n *Node) provision(c *nodeConfig) []volume {
	n.mu.Lock()
	defer n.mu.Unlock()
	system := n.disks()[0].Name
	for _, fixed := range []partition{
		{volume: constants.EFIPartitionLabel, size: efiSize, filesystem: block.FilesystemTypeVFAT},
		{volume: constants.MetaPartitionLabel, size: metaSize},
		{volume: constants.StatePartitionLabel, size: stateSize, filesystem: block.FilesystemTypeXFS},
	} {
		if n.disk.partition(fixed.volume) == nil {
			fixed.disk = system
			n.disk.add(fixed)
		}
	}
	all := []volume{
		{id: constants.MetaPartitionLabel, on: n.disk.partition(constants.MetaPartitionLabel)},
		{id: constants.StatePartitionLabel, on: n.disk.partition(constants.StatePartitionLabel), target: constants.StateMountPoint},
	}
	ephemeral, _ := c.Volumes().ByName(constants.EphemeralPartitionLabel)
	all = append(all, n.place(request{
		id: constants.EphemeralPartitionLabel, target: constants.EphemeralMountPoint, filesystem: block.FilesystemTypeXFS,
		provisioning: ephemeral.Provisioning(), encrypted: ephemeral.Encryption() != nil, system: true,
	}))
	if c.controlPlane() {
		// A directory of the volume above, unless 1.14 gives it a partition of its own.
		etcd, _ := c.Volumes().ByName(constants.EtcdDataVolumeID)
		asked := request{id: constants.EtcdDataVolumeID, target: constants.EtcdDataPath, kind: block.VolumeTypeDirectory}
		if c.dedicatedEtcd() {
			asked.kind, asked.filesystem, asked.system = block.VolumeTypePartition, block.FilesystemTypeXFS, true
			asked.provisioning, asked.encrypted = etcd.Provisioning(), etcd.Encryption() != nil
		}
		all = append(all, n.place(asked))
	}
	for _, user := range c.UserVolumeConfigs() {
		all = append(all, n.place(request{
			id: constants.UserVolumePrefix + user.Name(), target: constants.UserVolumeMountPoint + "/" + user.Name(),
			filesystem: user.Filesystem().Type(), provisioning: user.Provisioning(), encrypted: user.Encryption() != nil,
			kind: user.Type().ValueOr(block.VolumeTypePartition),
		}))
	}
	for _, raw := range c.RawVolumeConfigs() {
		all = append(all, n.place(request{
			id: constants.RawVolumePrefix + raw.Name(), provisioning: raw.Provisioning(), encrypted: raw.Encryption() != nil,
		}))
	}
	return all
}

// request is what a configuration says of a volume.
type request struct {
	id, target   string
	kind         block.VolumeType
	filesystem   block.FilesystemType
	provisioning config.VolumeProvisioningConfig
	encrypted    bool
	// system is a volume of Talos, which is on the system disk unless it says otherwise.
	system bool
}

// place finds a volume, or makes it on the first disk that it may be on and that has room. The caller holds the lock.
func (n *Node) place(r request) volume {
	v := volume{id: r.id, target: r.target, kind: r.kind}
	if r.kind == block.VolumeTypeDirectory {
		return v
	}
	if v.on = n.disk.partition(r.id); v.on != nil {
		return v
	}
	least := r.provisioning.MinSize().ValueOr(minimumSize)
	matched := false
	for i, disk := range n.disks() {
		ok, err := disk.selected(r, i == 0)
		if err != nil {
			v.failed = fmt.Errorf("disk selector: %w", err)
			return v
		}
		if !ok {
			continue
		}
		matched = true
		size := n.disk.free(disk)
		if r.kind == block.VolumeTypeDisk && size != disk.Size {
			continue
		}
		if most, limited := maximum(r.provisioning, disk.Size, size); limited {
			size = min(size, most)
		}
		if size < least {
			continue
		}
		n.disk.add(partition{volume: r.id, disk: disk.Name, size: size, filesystem: r.filesystem, encrypted: r.encrypted})
		v.on = n.disk.partition(r.id)
		return v
	}
	v.failed = errors.New("no disks matched selector for volume")
	if matched {
		v.failed = errors.New("no disk that matches has enough space for the volume")
	}
	return v
}

func maximum(p config.VolumeProvisioningConfig, whole, free uint64) (uint64, bool) {
	if percent, relative := p.RelativeMaxSize().Get(); relative {
		if p.MaxSizeNegative() {
			return free - min(free, whole*percent/100), true
		}
		return whole * percent / 100, true
	}
	most, limited := p.MaxSize().Get()
	if limited && p.MaxSizeNegative() {
		return free - min(free, most), true
	}
	return most, limited
}

// selected tells whether a volume may be on the disk.
func (d Disk) selected(r request, system bool) (bool, error) {
	selector, found := r.provisioning.DiskSelector().Get()
	if !found || selector.IsZero() {
		return r.system && system, nil
	}
	return d.matches(selector, system)
}

func (d Disk) matches(selector cel.Expression, system bool) (bool, error) {
	return selector.EvalBool(celenv.DiskLocator(), map[string]any{
		"disk": &blockapi.DiskSpec{
			DevPath: "/dev/" + d.Name, Size: d.Size, Transport: d.Transport, Model: d.Model, Serial: d.Serial, Rotational: d.Rotational,
		},
		"system_disk": system,
	})
}

func (d *disk) partition(volume string) *partition {
	i := slices.IndexFunc(d.partitions, func(p partition) bool { return p.volume == volume })
	if i < 0 {
		return nil
	}
	found := d.partitions[i]
	return &found
}

// add makes a partition behind those that are there.
func (d *disk) add(p partition) {
	p.index = 1
	for _, other := range d.partitions {
		if other.disk == p.disk {
			p.index = max(p.index, other.index+1)
		}
	}
	p.uuid = uuid.NewString()
	d.partitions = append(d.partitions, p)
}

// free is what is left of a disk for another partition.
func (d *disk) free(of Disk) uint64 {
	left := of.Size
	for _, p := range d.partitions {
		if p.disk == of.Name {
			left -= min(left, p.size)
		}
	}
	return left
}

// drop removes partitions.
func (d *disk) drop(condition func(partition) bool) {
	d.partitions = slices.DeleteFunc(d.partitions, condition)
}
