// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProgramRanges(t *testing.T) {
	const smaps = `00400000-02280000 r-xp 00000000 08:02 173521                             /manager
Size:              31232 kB
Rss:               20480 kB
Anonymous:             0 kB
AnonHugePages:         0 kB
VmFlags: rd ex mr mw me
02281000-04600000 r--p 01e81000 08:02 173521                             /manager
Anonymous:             0 kB
04600000-04609000 r--p 04200000 08:02 173521                             /manager
Rss:                  36 kB
Anonymous:             4 kB
AnonHugePages:         0 kB
04609000-04769000 rw-p 04209000 08:02 173521                             /manager
Anonymous:             0 kB
04769000-06787000 rw-p 00000000 00:00 0 
Anonymous:             0 kB
06787000-06788000 r--p 04769000 08:02 173521                             /manager
Rss:                   4 kB
7f1c5a000000-7f1c5a021000 r--p 00000000 08:02 173522                     /manager-2
Anonymous:             0 kB
7ffd3b1d2000-7ffd3b1f3000 rw-p 00000000 00:00 0                          [stack]
Anonymous:            12 kB
`

	want := []pages{{0x400000, 0x2280000}, {0x2281000, 0x4600000}}
	if diff := cmp.Diff(want, programRanges([]byte(smaps), "/manager"), cmp.AllowUnexported(pages{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Of a program that can be relocated nothing is given back: the pages that were relocated would be lost.
func TestIsFixed(t *testing.T) {
	for kind, want := range map[elf.Type]bool{elf.ET_EXEC: true, elf.ET_DYN: false} {
		header := elf.Header64{Type: uint16(kind), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT)}
		copy(header.Ident[:], elf.ELFMAG)
		header.Ident[elf.EI_CLASS] = byte(elf.ELFCLASS64)
		header.Ident[elf.EI_DATA] = byte(elf.ELFDATA2LSB)
		header.Ident[elf.EI_VERSION] = byte(elf.EV_CURRENT)

		var text bytes.Buffer
		if err := binary.Write(&text, binary.LittleEndian, header); err != nil {
			t.Fatal(err)
		}

		program := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(program, text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}

		if got, err := isFixed(program); err != nil || got != want {
			t.Errorf("%v: got %v, %v", kind, got, err)
		}
	}

	if _, err := isFixed(os.DevNull); err == nil {
		t.Error("what is no program is taken for one")
	}
}

// What is given back comes again when it is needed.
func TestReleaseProgram(t *testing.T) {
	if fixed, err := isFixed("/proc/self/exe"); err != nil || !fixed {
		t.Skipf("the test can be relocated: %v", err)
	}

	before := residentFile(t)

	if err := releaseProgram(); err != nil {
		t.Fatal(err)
	}

	if after := residentFile(t); after > before/4*3 {
		t.Errorf("%d of %d KiB are left", after, before)
	}

	// The program goes on.
	if text := strings.Repeat(strconv.Itoa(before), 2); len(text) < 2 {
		t.Error("the program does not work any more")
	}
}

func residentFile(t *testing.T) int {
	t.Helper()

	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}

	for line := range bytes.Lines(status) {
		if fields := strings.Fields(string(line)); len(fields) == 3 && fields[0] == "RssFile:" {
			kilobytes, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}

			return kilobytes
		}
	}

	t.Fatal("no RssFile")

	return 0
}
