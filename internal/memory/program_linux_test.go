// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProgramRanges(t *testing.T) {
	const maps = `00400000-02280000 r-xp 00000000 08:02 173521                             /manager
02281000-04600000 r--p 01e81000 08:02 173521                             /manager
04609000-04769000 rw-p 04209000 08:02 173521                             /manager
04769000-06787000 rw-p 00000000 00:00 0 
c000000000-c000400000 rw-p 00000000 00:00 0 
7f1c5a000000-7f1c5a021000 r--p 00000000 08:02 173522                     /manager-2
7ffd3b1d2000-7ffd3b1f3000 rw-p 00000000 00:00 0                          [stack]
`

	want := []pages{{0x400000, 0x2280000}, {0x2281000, 0x4600000}}
	if diff := cmp.Diff(want, programRanges([]byte(maps), "/manager"), cmp.AllowUnexported(pages{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// What is given back comes again when it is needed.
func TestReleaseProgram(t *testing.T) {
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
