// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// program is what is needed to run one component.
type program struct {
	name  string
	path  string
	args  []string
	env   []string
	grace time.Duration

	// ready is asked again and again until it returns nil.
	ready func(context.Context) error
}

// process is a program that runs.
type process struct {
	program

	logFile string
	cmd     *exec.Cmd

	// done is closed when the program has ended and exit is set.
	done chan struct{}
	exit error

	stopping bool
}

const (
	readyInterval = 50 * time.Millisecond
	logTail       = 20
)

// start runs a program, with its output in a file of logDir, and waits until it is ready, ends or ctx is done. A program
// that did not become ready is stopped, and the error holds the end of its log.
func start(ctx context.Context, logDir string, p program) (*process, error) {
	proc := &process{program: p, logFile: filepath.Join(logDir, p.name+".log"), done: make(chan struct{})}
	if err := proc.run(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	if err := proc.waitReady(ctx); err != nil {
		// What stop could add, that the program ended by itself, is in err already.
		_ = proc.stop()
		return nil, fmt.Errorf("start %s: %w\n%s", p.name, err, proc.tail(logTail))
	}
	return proc, nil
}

func (p *process) run() error {
	log, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	p.cmd = exec.Command(p.path, p.args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Env = append(minimalEnvironment(), p.env...)
	p.cmd.SysProcAttr = processAttributes()

	started := make(chan error)
	go func() {
		defer log.Close() //nolint:errcheck // The process wrote through its own descriptor.
		// The kernel ends the child when the thread that started it ends, so the thread has to outlive the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.exit = p.cmd.Wait()
		close(p.done)
	}()
	return <-started
}

func (p *process) waitReady(ctx context.Context) error {
	ticker := time.NewTicker(readyInterval)
	defer ticker.Stop()
	for {
		err := p.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("ended before it was ready: %s", p.describeExit())
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w: %w", ctx.Err(), err)
		case <-ticker.C:
		}
	}
}

// stop ends the process and returns an error if it had ended by itself before.
func (p *process) stop() error {
	if p.stopping {
		<-p.done
		return nil
	}
	p.stopping = true
	select {
	case <-p.done:
		return fmt.Errorf("%s ended by itself: %s, see %s", p.name, p.describeExit(), p.logFile)
	default:
	}
	// Only an error about a process that is gone is possible here, and then done is closed presently.
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(p.grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	return nil
}

// describeExit may be called when done is closed.
func (p *process) describeExit() string {
	if p.exit != nil {
		return p.exit.Error()
	}
	return "exit status 0"
}

// tail returns the last lines of the process's log.
func (p *process) tail(lines int) string {
	content, err := os.ReadFile(p.logFile)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// minimalEnvironment keeps the caller's settings, such as KUBECONFIG or a proxy, away from the components.
func minimalEnvironment() []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
