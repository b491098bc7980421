// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// state is where a running demo keeps what `demo down` and its user need.
type state struct {
	root string // of the repository
	dir  string
}

func findState() (state, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return state{}, fmt.Errorf("find the repository: %w", err)
	}

	root := strings.TrimSpace(string(out))

	return state{root: root, dir: filepath.Join(root, ".demo")}, nil
}

func (s state) path(name string) string { return filepath.Join(s.dir, name) }

func (s state) kubeconfig() string { return s.path("kubeconfig") }

// workloadKubeconfig gives access to the cluster that the demo's machines form.
func (s state) workloadKubeconfig() string { return s.path("demo.kubeconfig") }

// pid of the running demo, and whether it runs. The file is written by the process itself and removed when it ends.
func (s state) pid() (int, bool) {
	data, err := os.ReadFile(s.path("pid"))
	if err != nil {
		return 0, false
	}

	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || syscall.Kill(pid, 0) != nil {
		return 0, false
	}

	// The number may have gone to another process since.
	executable, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err == nil && !strings.HasPrefix(executable, s.dir) {
		return 0, false
	}

	return pid, true
}

const stopTimeout = time.Minute

func down(ctx context.Context, s state) error {
	pid, running := s.pid()
	if !running {
		fmt.Fprintln(out, "No demo is running.")

		return os.RemoveAll(s.dir)
	}

	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop process %d: %w", pid, err)
	}

	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, stopTimeout, true, func(context.Context) (bool, error) {
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH), nil
	})
	if err != nil {
		return fmt.Errorf("process %d does not end; see %s: %w", pid, s.path("world.log"), err)
	}

	fmt.Fprintln(out, "The demo has ended.")

	return os.RemoveAll(s.dir)
}
