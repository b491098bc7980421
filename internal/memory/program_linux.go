// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// releaseProgram gives back the pages of the program's file. Most of them were needed for the start alone, and they are a large part of what a
// small manager occupies; the kernel would take them back itself when memory gets scarce. What is needed again is read again, from the
// kernel's cache. Only what cannot be written is given back, so that nothing is lost.
func releaseProgram() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("pages of the program: %w", err)
	}

	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("pages of the program: %w", err)
	}

	var faults []error

	for _, each := range programRanges(maps, program) {
		if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, each.start, each.end-each.start, syscall.MADV_DONTNEED); errno != 0 {
			faults = append(faults, fmt.Errorf("pages of the program: %w", errno))
		}
	}

	return errors.Join(faults...)
}

// pages are those from one address to another.
type pages struct{ start, end uintptr }

// programRanges are where a file is mapped that cannot be written, in the form of /proc/PID/maps:
//
//	00400000-02280000 r-xp 00000000 08:02 173521  /manager
func programRanges(maps []byte, program string) []pages {
	const fields = 6

	var found []pages

	for scanner := bufio.NewScanner(bytes.NewReader(maps)); scanner.Scan(); {
		parts := strings.Fields(scanner.Text())
		if len(parts) != fields || parts[fields-1] != program || !strings.HasPrefix(parts[1], "r-") {
			continue
		}

		from, to, _ := strings.Cut(parts[0], "-")
		start, errFrom := strconv.ParseUint(from, 16, strconv.IntSize)
		end, errTo := strconv.ParseUint(to, 16, strconv.IntSize)

		if errFrom == nil && errTo == nil && start < end {
			found = append(found, pages{uintptr(start), uintptr(end)})
		}
	}

	return found
}
