// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/resources/block"
)

// machineFile is in a node's directory what the machine is, and what is on its disk: beside the data of its etcd member. It has the
// machine configuration, and so secrets.
const machineFile = "machine.json"

// kept is what a machine is to another process that goes on with it.
type kept struct {
	Options       NodeOptions
	Address, UUID string
	UserData      []byte
	Boots         int
	On            bool
	Disk          keptDisk
}

type keptDisk struct {
	Slots          [2]string
	Next, Fallback int
	Staged         string
	Installed      bool
	Config         []byte
	Meta           map[uint32][]byte
	Partitions     []keptPartition
}

type keptPartition struct {
	Volume, Disk string
	Index        int
	Size         uint64
	Filesystem   block.FilesystemType
	Encrypted    bool
	UUID         string
}

// writeDown writes down what the machine is now, if the world's options say so and something has changed since. When the world has been
// closed, which a machine notices as a power failure, it stays as it was.
func (n *Node) writeDown() {
	w := n.world
	w.mu.Lock()
	wanted := w.options.Keep && !w.closed
	w.mu.Unlock()
	if !wanted {
		return
	}
	n.keeping.Lock()
	defer n.keeping.Unlock()
	content, gone, err := n.kept()
	if gone || bytes.Equal(content, n.keptLast) {
		return
	}
	if err == nil {
		err = writeWhole(filepath.Join(n.dir(), machineFile), content)
	}
	if err != nil {
		n.fail(fmt.Errorf("keep the machine: %w", err))
		return
	}
	n.keptLast = content
}

func (n *Node) kept() (content []byte, gone bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.disk
	k := kept{
		Options: n.options, Address: n.address, UUID: n.uuid, UserData: n.userData, Boots: n.boots, On: n.on,
		Disk: keptDisk{
			Slots: [2]string{d.slots[0].ref, d.slots[1].ref}, Next: d.next, Fallback: d.fallback, Installed: d.installed, Config: d.config, Meta: d.meta,
		},
	}
	if d.staged != nil {
		k.Disk.Staged = d.staged.ref
	}
	for _, p := range d.partitions {
		k.Disk.Partitions = append(k.Disk.Partitions, keptPartition{
			Volume: p.volume, Disk: p.disk, Index: p.index, Size: p.size, Filesystem: p.filesystem, Encrypted: p.encrypted, UUID: p.uuid,
		})
	}
	content, err = json.Marshal(k)
	return content, n.gone, err
}

// writeWhole writes a file so that it is the old one or the new one whenever the process ends.
func writeWhole(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	part := path + ".part"
	return errors.Join(os.WriteFile(part, content, 0o600), os.Rename(part, path))
}

// Restore makes the machine of that name that an earlier process has left in Options.Dir, with what is on its disk, at its address. It boots,
// as after a power failure, if it was on; one that does not is there all the same, with an error. It is nil if there is none with that
// provider ID.
func (w *World) Restore(ctx context.Context, name, providerID string) (*Node, error) {
	content, err := os.ReadFile(filepath.Join(w.options.Dir, name, machineFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, err
	}
	k := kept{}
	if err := json.Unmarshal(content, &k); err != nil {
		return nil, fmt.Errorf("machine %s: %s: %w", name, machineFile, err)
	}
	if k.Options.ProviderID != providerID {
		return nil, nil //nolint:nilnil // it is another one, which was there before
	}
	n, err := w.restore(k)
	if err != nil {
		return nil, fmt.Errorf("restore machine %s: %w", name, err)
	}
	n.note("comes back")
	if !k.On {
		return n, nil
	}
	return n, n.PowerOn(ctx)
}

func (w *World) restore(k kept) (*Node, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || slices.ContainsFunc(w.nodes, func(n *Node) bool { return n.options.Name == k.Options.Name }) {
		return nil, errors.New("the world is closed, or has the machine already")
	}
	if err := w.addresses.Hold(k.Address); err != nil {
		return nil, err
	}
	n, err := newNode(w, k.Address, k.Options)
	if err == nil {
		n.uuid, n.userData, n.boots = k.UUID, k.UserData, k.Boots
		err = n.disk.restore(k.Disk)
	}
	if err != nil {
		return nil, errors.Join(err, w.addresses.Free(k.Address))
	}
	w.nodes = append(w.nodes, n)
	return n, nil
}

func (d *disk) restore(k keptDisk) error {
	var errs []error
	image := func(ref string) osImage {
		if ref == "" {
			return osImage{}
		}
		parsed, err := parseImage(ref)
		errs = append(errs, err)
		return parsed
	}
	*d = disk{
		slots: [2]osImage{image(k.Slots[0]), image(k.Slots[1])}, next: k.Next, fallback: k.Fallback, installed: k.Installed, config: k.Config,
		meta: map[uint32][]byte{},
	}
	maps.Copy(d.meta, k.Meta)
	if k.Staged != "" {
		staged := image(k.Staged)
		d.staged = &staged
	}
	for _, p := range k.Partitions {
		d.partitions = append(d.partitions, partition{
			volume: p.Volume, disk: p.Disk, index: p.Index, size: p.Size, filesystem: p.Filesystem, encrypted: p.Encrypted, uuid: p.UUID,
		})
	}
	return errors.Join(errs...)
}

// Configured tells whether the machine has a configuration, on its disk or from its platform.
func (n *Node) Configured() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.disk.config) > 0 || len(n.userData) > 0
}
