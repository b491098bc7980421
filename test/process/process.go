// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Program is what is needed to run one component.
type Program struct {
	// Name is also the name of the log file, without .log.
	Name string
	Path string
	Args []string
	// Env is added to a minimal environment.
	Env []string
	// Grace is how long the program may take to end when it is asked to.
	Grace time.Duration

	// Ready is asked again and again until it returns nil.
	Ready func(context.Context) error
}

// Process is a program that runs.
type Process struct {
	Program

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

// Start runs a program, with its output in a file of logDir, and waits until it is ready, ends or ctx is done. A program
// that did not become ready is stopped, and the error holds the end of its log.
func Start(ctx context.Context, logDir string, p Program) (*Process, error) {
	proc := &Process{Program: p, logFile: filepath.Join(logDir, p.Name+".log"), done: make(chan struct{})}
	if err := proc.run(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.Name, err)
	}
	if err := proc.waitReady(ctx); err != nil {
		// What Stop could add, that the program ended by itself, is in err already.
		_ = proc.Stop()
		return nil, fmt.Errorf("start %s: %w\n%s", p.Name, err, proc.Tail(logTail))
	}
	return proc, nil
}

func (p *Process) run() error {
	log, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	p.cmd = exec.Command(p.Path, p.Args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Env = append(minimalEnvironment(), p.Env...)
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

func (p *Process) waitReady(ctx context.Context) error {
	ticker := time.NewTicker(readyInterval)
	defer ticker.Stop()
	for {
		err := p.Ready(ctx)
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

// Stop ends the process and returns an error if it had ended by itself before.
func (p *Process) Stop() error {
	if p.stopping {
		<-p.done
		return nil
	}
	p.stopping = true
	select {
	case <-p.done:
		return fmt.Errorf("%s ended by itself: %s, see %s", p.Name, p.describeExit(), p.logFile)
	default:
	}
	// Only an error about a process that is gone is possible here, and then done is closed presently.
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(p.Grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	return nil
}

// Kill ends the process as the death of its machine does, and waits until it is gone.
func (p *Process) Kill() error {
	p.stopping = true
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}

// Exit is how a process ended that Stop or Kill has returned for.
func (p *Process) Exit() error {
	<-p.done
	return p.exit
}

// Done is closed when the process is gone.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended tells whether the process is gone.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// PID is the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal to the process, for instance syscall.SIGSTOP to have it hang.
func (p *Process) Signal(signal syscall.Signal) error { return p.cmd.Process.Signal(signal) }

// LogFile is where the process's output goes.
func (p *Process) LogFile() string { return p.logFile }

// describeExit may be called when done is closed.
func (p *Process) describeExit() string {
	if p.exit != nil {
		return p.exit.Error()
	}
	return "exit status 0"
}

// Tail returns the last lines of the process's log.
func (p *Process) Tail(lines int) string {
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
