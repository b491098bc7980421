// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"time"

	runner "github.com/maesh-dev/ichor/test/process"
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
	*runner.Process

	name string
}

// readyInterval is how often a component is asked whether it is ready.
const readyInterval = 50 * time.Millisecond

// start runs a program as package process does it.
func start(ctx context.Context, logDir string, p program) (*process, error) {
	running, err := runner.Start(ctx, logDir, runner.Program{
		Name: p.name, Path: p.path, Args: p.args, Env: p.env, Grace: p.grace, Ready: p.ready,
	})
	if err != nil {
		return nil, err
	}
	return &process{Process: running, name: p.name}, nil
}

// stop ends the process and returns an error if it had ended by itself before.
func (p *process) stop() error { return p.Stop() }

// tail returns the last lines of the process's log.
func (p *process) tail(lines int) string { return p.Tail(lines) }
