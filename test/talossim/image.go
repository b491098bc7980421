// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/maesh-dev/ichor/internal/version"
)

// osImage is an installed Talos.
type osImage struct {
	ref       string
	version   version.Talos
	schematic string
}

var schematicID = regexp.MustCompile(`^[0-9a-f]{64}$`)

// parseImage reads what an installer image is from its reference: the tag is the version, and a path element of 64
// hexadecimal digits the schematic, as the image factory has it.
func parseImage(ref string) (osImage, error) {
	name, _, _ := strings.Cut(ref, "@")
	i := strings.LastIndex(name, ":")
	if i < 0 || strings.Contains(name[i:], "/") {
		return osImage{}, fmt.Errorf("image %q: has no tag that says its version", ref)
	}
	talos, err := version.ParseTalos(name[i+1:])
	if err != nil {
		return osImage{}, fmt.Errorf("image %q: %w", ref, err)
	}
	image := osImage{ref: ref, version: talos}
	for element := range strings.SplitSeq(name[:i], "/") {
		if schematicID.MatchString(element) {
			image.schematic = element
		}
	}
	return image, nil
}

// disk is what a machine keeps when it is off.
type disk struct {
	// slots are the two boot entries; next is the one that the boot loader takes. An empty slot has no reference.
	slots [2]osImage
	next  int
	// fallback is the entry to go back to if the next boot fails, as an upgrade leaves it; -1 for none.
	fallback int
	// staged is an image that the next boot installs before it boots again.
	staged *osImage
	// installed is false for a machine that was booted from the network or a medium.
	installed bool
	// config is the machine configuration of the next boot.
	config []byte
	meta   map[uint32][]byte
	// partitions are those of all disks of the machine.
	partitions []partition
}

// install writes an image into the entry that is not the default, and makes it the default. What the default was before
// is what a failed boot goes back to. A second install before the reboot therefore overwrites the entry that runs.
func (d *disk) install(image osImage) {
	old := d.next
	d.next = 1 - old
	d.slots[d.next] = image
	d.fallback = old
	d.installed = true
}

// revert makes the other entry the default.
func (d *disk) revert() error {
	other := 1 - d.next
	if d.slots[other].ref == "" {
		return fmt.Errorf("cannot roll back: there is no other boot entry")
	}
	d.next, d.fallback = other, -1
	return nil
}

// wipe is what a reset of the system disk leaves: of all of it, or of the partitions with these labels.
func (d *disk) wipe(all bool, labels map[string]bool, system string) {
	if all || labels[constants.StatePartitionLabel] {
		d.config = nil
	}
	if all || labels[constants.MetaPartitionLabel] {
		d.meta, d.fallback, d.staged = map[uint32][]byte{}, -1, nil
	}
	if all {
		d.installed = false
	}
	d.drop(func(p partition) bool { return p.disk == system && (all || labels[p.volume]) })
}

// wipeDevice removes what is on a disk or a partition, and the partition itself if it is to be dropped.
func (d *disk) wipeDevice(name string, drop bool) {
	d.drop(func(p partition) bool { return p.disk == name || drop && p.device() == name })
	for i, p := range d.partitions {
		if p.device() == name {
			// An empty partition without a label is what is left.
			d.partitions[i] = partition{disk: p.disk, index: p.index, size: p.size, uuid: p.uuid}
		}
	}
}
