// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// releaseProgram gives back the pages of the program's file. Most of them were needed for the start alone, and they are a large part of what a
// small manager occupies; the kernel would take them back itself when memory gets scarce. What is needed again is read again, from the
// kernel's cache. Only what is still as it is in the file is given back, so that nothing is lost: pages that cannot be written now may have
// been written when the program was relocated, and of a program that can be relocated nothing is given back at all.
func releaseProgram() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("pages of the program: %w", err)
	}

	fixed, err := isFixed("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("pages of the program: %w", err)
	}

	if !fixed {
		return nil
	}

	maps, err := os.ReadFile("/proc/self/smaps")
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

// isFixed says whether a program is always at the same addresses, so that nothing in it had to be relocated.
func isFixed(program string) (bool, error) {
	file, err := elf.Open(program)
	if err != nil {
		return false, err
	}
	defer file.Close() //nolint:errcheck // it is only read

	return file.Type == elf.ET_EXEC, nil
}

// pages are those from one address to another.
type pages struct{ start, end uintptr }

// programRanges are where a file is mapped that cannot be written and was not, in the form of /proc/PID/smaps:
//
//	00400000-02280000 r-xp 00000000 08:02 173521  /manager
//	Rss:               20480 kB
//	Anonymous:             0 kB
//
// Where the kernel does not tell of anonymous pages, there is none that can be given back.
func programRanges(smaps []byte, program string) []pages {
	var (
		found   []pages
		current pages
		ours    bool
	)

	for scanner := bufio.NewScanner(bytes.NewReader(smaps)); scanner.Scan(); {
		name, _, _ := strings.Cut(scanner.Text(), " ")

		switch {
		case !strings.HasSuffix(name, ":"):
			current, ours = programRange(scanner.Text(), program)
		case ours && name == "Anonymous:":
			if fields := strings.Fields(scanner.Text()); len(fields) > 1 && fields[1] == "0" {
				found = append(found, current)
			}
		}
	}

	return found
}

// programRange is where a line of /proc/PID/maps has a file that cannot be written, if it has.
func programRange(line, program string) (pages, bool) {
	const fields = 6

	parts := strings.Fields(line)
	if len(parts) != fields || parts[fields-1] != program || !strings.HasPrefix(parts[1], "r-") {
		return pages{}, false
	}

	from, to, _ := strings.Cut(parts[0], "-")
	start, errFrom := strconv.ParseUint(from, 16, strconv.IntSize)
	end, errTo := strconv.ParseUint(to, 16, strconv.IntSize)

	return pages{uintptr(start), uintptr(end)}, errFrom == nil && errTo == nil && start < end
}
