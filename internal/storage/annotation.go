// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/maesh-dev/ichor/internal/suggest"
)

const (
	diskTypeFilesystem = "filesystem"
	diskTypeBlock      = "block"
)

// diskDrivers are the ways in which the V2 engine may drive a block disk. Empty is Longhorn's choice.
var diskDrivers = []string{"", "auto", "aio", "nvme"}

// longhornDisk is one entry of the annotation LonghornDisksConfigAnnotation, in Longhorn's own field names and order.
type longhornDisk struct {
	Name              string   `json:"name,omitempty"`
	Path              string   `json:"path"`
	DiskType          string   `json:"diskType,omitempty"`
	DiskDriver        string   `json:"diskDriver,omitempty"`
	AllowScheduling   bool     `json:"allowScheduling"`
	EvictionRequested bool     `json:"evictionRequested,omitempty"`
	StorageReserved   int64    `json:"storageReserved,omitempty"`
	Tags              []string `json:"tags,omitempty"`
}

// CheckDisksConfig checks the value of the annotation LonghornDisksConfigAnnotation, whoever wrote it: of everything that makes Longhorn
// ignore the whole of it with no more than a log line, that which can be seen without the node. The error names the disk by its place in
// the list.
func CheckDisksConfig(value string) error {
	var disks []longhornDisk

	// Fields that Longhorn does not have are harmless: it overlooks them too.
	if err := json.Unmarshal([]byte(value), &disks); err != nil {
		return fmt.Errorf("not a JSON list of Longhorn disks, and Longhorn would ignore it: %w", err)
	}

	var errs []error

	names, paths, volumes := map[string]int{}, map[string]int{}, map[string]int{}

	for i, disk := range disks {
		errs = append(errs, checkDisk(i, disk))
		errs = append(errs,
			once(names, i, "name", disk.Name),
			cmp.Or(once(paths, i, "path", cleanPath(disk.Path)), onceVolume(volumes, i, disk)))
	}

	return errors.Join(errs...)
}

// UnknownDiskFields says which fields in the value of the annotation LonghornDisksConfigAnnotation Longhorn does not have. It overlooks
// them, and where one is mistyped the disk is not what its writer wanted.
func UnknownDiskFields(value string) []string {
	var disks []map[string]json.RawMessage

	if json.Unmarshal([]byte(value), &disks) != nil {
		return nil // told by CheckDisksConfig, or no annotation
	}

	var known []string

	for field := range reflect.TypeFor[longhornDisk]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		known = append(known, name)
	}

	var unknown []string

	for i, disk := range disks {
		for _, name := range slices.Sorted(maps.Keys(disk)) {
			// Longhorn's decoder takes a name in any case.
			if slices.ContainsFunc(known, func(field string) bool { return strings.EqualFold(field, name) }) {
				continue
			}

			message := fmt.Sprintf("disk %d: Longhorn has no field %q and overlooks it", i, name)
			if near := cmp.Or(suggest.Nearest(name, known), suggest.Longer(name, known), begins(name, known)); near != "" {
				message += fmt.Sprintf("; did you mean %q?", near)
			}

			unknown = append(unknown, message)
		}
	}

	return unknown
}

// begins gives the field that begins as a name does, but for the name's last letter: allowScheduling for allowSchedule.
func begins(name string, fields []string) string {
	for _, field := range fields {
		if len(name) > 4 && strings.HasPrefix(field, name[:len(name)-1]) {
			return field
		}
	}

	return ""
}

func checkDisk(i int, disk longhornDisk) error {
	var errs []error

	fault := func(field, format string, arguments ...any) {
		errs = append(errs, fmt.Errorf("disk %d: %s: %w", i, field, fmt.Errorf(format, arguments...)))
	}

	switch {
	case disk.Path == "":
		fault("path", "must be set")
	case disk.DiskType != diskTypeBlock && !path.IsAbs(disk.Path):
		fault("path", "%q must be an absolute path", disk.Path)
	}

	if disk.DiskType != "" && disk.DiskType != diskTypeFilesystem && disk.DiskType != diskTypeBlock {
		fault("diskType", "%q must be %s or %s", disk.DiskType, diskTypeFilesystem, diskTypeBlock)
	}

	if !slices.Contains(diskDrivers, disk.DiskDriver) {
		fault("diskDriver", "%q must be one of auto, aio and nvme, or empty", disk.DiskDriver)
	}

	if disk.StorageReserved < 0 {
		fault("storageReserved", "%d must not be below zero", disk.StorageReserved)
	}

	if disk.AllowScheduling && disk.EvictionRequested {
		fault("evictionRequested", "must not be true together with allowScheduling: Longhorn refuses the node")
	}

	for at, err := range badTags(disk.Tags) {
		errs = append(errs, fmt.Errorf("disk %d: tags[%d]: %w", i, at, err))
	}

	return errors.Join(errs...)
}

// CheckNodeTags checks the value of the annotation LonghornNodeTagsAnnotation: Longhorn ignores the whole of it if one tag is invalid.
func CheckNodeTags(value string) error {
	var tags []string

	if err := json.Unmarshal([]byte(value), &tags); err != nil {
		return fmt.Errorf("not a JSON list of Longhorn tags, and Longhorn would ignore it: %w", err)
	}

	var errs []error
	for at, err := range badTags(tags) {
		errs = append(errs, fmt.Errorf("tags[%d]: %w", at, err))
	}

	return errors.Join(errs...)
}

// badTags finds, by their places, tags that are not qualified names, which is what Longhorn takes, and tags that are given twice.
func badTags(tags []string) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i, tag := range tags {
			for _, problem := range validation.IsQualifiedName(tag) {
				if !yield(i, fmt.Errorf("%q: %s", tag, problem)) {
					return
				}
			}

			if slices.Contains(tags[:i], tag) && !yield(i, fmt.Errorf("%q is given twice", tag)) {
				return
			}
		}
	}
}

// once reports a value that an earlier disk has too.
func once(seen map[string]int, i int, field, value string) error {
	if value == "" {
		return nil
	}

	if earlier, found := seen[value]; found {
		return fmt.Errorf("disk %d: %s: %q is that of disk %d too", i, field, value, earlier)
	}

	seen[value] = i

	return nil
}

// onceVolume reports a second disk in one user volume: Longhorn refuses two disks on one file system (longhorn#1285).
func onceVolume(seen map[string]int, i int, disk longhornDisk) error {
	below, found := strings.CutPrefix(cleanPath(disk.Path), constants.UserVolumeMountPoint+"/")
	if !found || disk.DiskType == diskTypeBlock {
		return nil
	}

	volume, _, _ := strings.Cut(below, "/")

	if earlier, found := seen[volume]; found {
		return fmt.Errorf("disk %d: path: in the user volume %q, as disk %d is; Longhorn takes one disk for each file system", i, volume, earlier)
	}

	seen[volume] = i

	return nil
}

func cleanPath(p string) string {
	if p == "" {
		return ""
	}

	return path.Clean(p)
}
