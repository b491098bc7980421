// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// peakInterval is how often a process is looked at: collections of garbage are further apart.
const peakInterval = 2 * time.Millisecond

// OwnMemory is what a process has written into its memory, in bytes: what is resident without pages of files, which come and go as the kernel
// likes. It needs Linux.
func OwnMemory(pid int) (uint64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}

	// Size, resident, pages of files, and others.
	const resident, ofFiles = 1, 2

	fields := strings.Fields(string(content))
	if len(fields) <= ofFiles {
		return 0, fmt.Errorf("memory of process %d: too few fields", pid)
	}

	all, errAll := strconv.ParseUint(fields[resident], 10, 64)
	files, errFiles := strconv.ParseUint(fields[ofFiles], 10, 64)

	if err := errors.Join(errAll, errFiles); err != nil {
		return 0, fmt.Errorf("memory of process %d: %w", pid, err)
	}

	return (all - files) * uint64(os.Getpagesize()), nil
}

// Peak is the most that a process has of its own while it is watched.
type Peak struct {
	end, done chan struct{}
	most      uint64
	err       error
}

// WatchPeak watches a process until End.
func WatchPeak(pid int) *Peak {
	p := &Peak{end: make(chan struct{}), done: make(chan struct{})}

	go func() {
		defer close(p.done)

		ticker := time.NewTicker(peakInterval)
		defer ticker.Stop()

		for {
			now, err := OwnMemory(pid)
			if err != nil {
				p.err = err

				return
			}

			p.most = max(p.most, now)

			select {
			case <-p.end:
				return
			case <-ticker.C:
			}
		}
	}()

	return p
}

// End ends the watch, and returns the most.
func (p *Peak) End() (uint64, error) {
	close(p.end)
	<-p.done

	return p.most, p.err
}
