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
	// Resident is what it occupies now, and Peak the most since ForgetPeak.
	Resident, Peak uint64
}

// MemoryOf reads the memory of a process. It needs Linux.
func MemoryOf(pid int) (Memory, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, err
	}

	memory := Memory{}

	for name, value := range map[string]*uint64{"VmRSS:": &memory.Resident, "VmHWM:": &memory.Peak} {
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

// ForgetPeak has the peak of a process begin anew.
func ForgetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

// settling is how long the memory of a process must have stopped to shrink.
const settling = 10 * time.Second

// SettledMemory has a manager collect its garbage and waits until it has given back to the kernel what it does not need.
func SettledMemory(ctx context.Context, manager *harness.Provider) (Memory, error) {
	return settled(ctx, manager.PID(), func() error { return CollectGarbage(ctx, manager) })
}

// CollectGarbage has a manager collect its garbage. The profile that it gives is not of interest: its parameter is the only way to a
// collection from outside.
func CollectGarbage(ctx context.Context, manager *harness.Provider) error {
	_, err := Diagnostics(ctx, manager, collectPath)

	return err
}

const collectPath = "/debug/pprof/heap?gc=1"

// SettledServerMemory is SettledMemory of the API server.
func (w *World) SettledServerMemory(ctx context.Context) (Memory, error) {
	pid, err := w.PID(tools.KubeAPIServer)
	if err != nil {
		return Memory{}, err
	}

	return settled(ctx, pid, func() error { return w.CollectServerGarbage(ctx) })
}

// CollectServerGarbage has the API server collect its garbage.
func (w *World) CollectServerGarbage(ctx context.Context) error {
	httpClient, err := rest.HTTPClientFor(w.Config())
	if err != nil {
		return err
	}

	_, err = get(ctx, httpClient, w.Config().Host+collectPath)

	return err
}

func settled(ctx context.Context, pid int, collect func() error) (Memory, error) {
	var least Memory

	for since := time.Now(); time.Since(since) < settling; {
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

		if err = Pause(ctx, time.Second); err != nil {
			return Memory{}, err
		}
	}

	return least, nil
}

// Reconciles returns how many reconciles of a controller have ended, from the manager's metrics.
func Reconciles(ctx context.Context, manager *harness.Provider, controller string) (int, error) {
	metrics, err := Diagnostics(ctx, manager, "/metrics")
	if err != nil {
		return 0, err
	}

	total := 0.0

	for line := range strings.Lines(string(metrics)) {
		if !strings.HasPrefix(line, `controller_runtime_reconcile_total{controller="`+controller+`"`) {
			continue
		}

		fields := strings.Fields(line)

		value, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil {
			return 0, fmt.Errorf("metrics: %w", err)
		}

		total += value
	}

	return int(total), nil
}

// Diagnostics gets a path of the manager's diagnostics endpoint.
func Diagnostics(ctx context.Context, manager *harness.Provider, path string) ([]byte, error) {
	return get(ctx, http.DefaultClient, "http://"+manager.DiagnosticsAddress+path)
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
