// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/tools"
)

// Memory is what the kernel says of a process, in bytes.
type Memory struct {
	// Resident is what it occupies now, and Peak the most so far.
	Resident, Peak uint64

	// Program is what of Resident are pages of the program's file, which the kernel may take back at any time.
	Program uint64
}

// Own is what of Resident the process has written itself.
func (m Memory) Own() uint64 { return m.Resident - m.Program }

// MemoryOf reads the memory of a process. It needs Linux.
func MemoryOf(pid int) (Memory, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, err
	}

	memory := Memory{}

	for name, value := range map[string]*uint64{"VmRSS:": &memory.Resident, "VmHWM:": &memory.Peak, "RssFile:": &memory.Program} {
		if *value, err = kilobytes(status, name); err != nil {
			return Memory{}, fmt.Errorf("memory of process %d: %w", pid, err)
		}
	}

	return memory, nil
}

func kilobytes(status []byte, name string) (uint64, error) {
	for line := range bytes.Lines(status) {
		fields := strings.Fields(string(line))
		if len(fields) == 3 && fields[0] == name {
			n, err := strconv.ParseUint(fields[1], 10, 64)

			return n << 10, err
		}
	}

	return 0, fmt.Errorf("no %s", name)
}

// ProcessorTime is how long the processors have worked for a process. It needs Linux.
func ProcessorTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}

	// The name in parentheses may have spaces; the time for the program and that for the kernel are the 12th and 13th fields behind it.
	_, rest, _ := strings.Cut(string(stat), ") ")

	fields := strings.Fields(rest)
	if len(fields) < kernelTime+1 {
		return 0, fmt.Errorf("processor time of process %d: too few fields", pid)
	}

	ticks := int64(0)

	for _, field := range fields[kernelTime-1 : kernelTime+1] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("processor time of process %d: %w", pid, err)
		}

		ticks += n
	}

	return time.Duration(ticks) * tick, nil
}

const (
	// kernelTime is the position of the field behind the name.
	kernelTime = 12

	// tick is the unit of these fields, the same for all programs on Linux.
	tick = 10 * time.Millisecond
)

// SettledMemory has a manager collect its garbage and waits until it has given back to the kernel what it does not need, and has not given
// back more for so long.
func (w *World) SettledMemory(ctx context.Context, manager *harness.Provider, settling time.Duration) (Memory, error) {
	return Settled(ctx, manager.PID(), settling, func() error { return w.CollectGarbage(ctx, manager) })
}

// CollectGarbage has a manager collect its garbage. The profile that it gives is not of interest: its parameter is the only way to a
// collection from outside.
func (w *World) CollectGarbage(ctx context.Context, manager *harness.Provider) error {
	_, err := w.HeapProfile(ctx, manager)

	return err
}

// HeapProfile is what lives in a manager's heap, for go tool pprof.
func (w *World) HeapProfile(ctx context.Context, manager *harness.Provider) ([]byte, error) {
	return w.diagnostics.Get(ctx, manager, CollectPath)
}

// CollectPath is the profile of a Go program's heap, after a collection.
const CollectPath = "/debug/pprof/heap?gc=1"

// SettledServerMemory is SettledMemory of the API server.
func (w *World) SettledServerMemory(ctx context.Context, settling time.Duration) (Memory, error) {
	pid, err := w.PID(tools.KubeAPIServer)
	if err != nil {
		return Memory{}, err
	}

	return Settled(ctx, pid, settling, func() error { return w.CollectServerGarbage(ctx) })
}

// CollectServerGarbage has the API server collect its garbage.
func (w *World) CollectServerGarbage(ctx context.Context) error {
	httpClient, err := rest.HTTPClientFor(w.Config())
	if err != nil {
		return err
	}

	_, err = get(ctx, httpClient, w.Config().Host+CollectPath)

	return err
}

// Settled is the least memory of a process that collects its garbage again and again, when it has not become less for so long.
func Settled(ctx context.Context, pid int, settling time.Duration, collect func() error) (Memory, error) {
	var (
		least Memory
		since time.Time
	)

	for {
		if err := collect(); err != nil {
			return Memory{}, err
		}

		now, err := MemoryOf(pid)
		if err != nil {
			return Memory{}, err
		}

		// A hundredth is noise.
		if least.Resident == 0 || now.Resident < least.Resident-least.Resident/100 {
			least, since = now, time.Now()
		}

		if time.Since(since) >= settling {
			return least, nil
		}

		if err = Pause(ctx, collectPause); err != nil {
			return Memory{}, err
		}
	}
}

// collectPause is so long that the profiles, which come with each collection, do not make the process look busy.
const collectPause = 3 * time.Second

// Reconciles returns how many reconciles of each controller have ended, from the manager's metrics.
func (w *World) Reconciles(ctx context.Context, manager *harness.Provider) (map[string]int, error) {
	metrics, err := w.diagnostics.Get(ctx, manager, "/metrics")
	if err != nil {
		return nil, err
	}

	ended := map[string]int{}

	for line := range strings.Lines(string(metrics)) {
		series, text, _ := strings.Cut(line, "} ")

		labels, ok := strings.CutPrefix(series, `controller_runtime_reconcile_total{controller="`)
		if !ok {
			continue
		}

		value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}

		controller, _, _ := strings.Cut(labels, `"`)
		ended[controller] += int(value)
	}

	return ended, nil
}

func get(ctx context.Context, httpClient *http.Client, url string) (content []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}

	response, err := httpClient.Do(request)
	if err != nil {
		return nil, err
	}

	defer func() { err = errors.Join(err, response.Body.Close()) }()

	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", url, response.Status)
	}

	return io.ReadAll(response.Body)
}

// Pause waits, or returns the error of ctx.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()

	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
