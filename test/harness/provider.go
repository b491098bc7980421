// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/maesh-dev/ichor/test/tools"
)

// providerGrace is how long a manager may take to end when asked to. It is what its Deployment gives it.
const providerGrace = 10 * time.Second

// providerTimeout bounds the start of a manager on a busy machine.
const providerTimeout = 2 * time.Minute

// BuildProvider builds the manager of a provider, by its directory in the checkout, for instance "bootstrap", into a directory,
// and returns the path of the program. With the race detector it is several times slower, and as such managers are.
func BuildProvider(ctx context.Context, provider, dir string) (string, error) {
	return BuildProviderVersion(ctx, provider, "", dir)
}

// BuildProviderVersion is BuildProvider for a manager that says that it is of a version.
func BuildProviderVersion(ctx context.Context, provider, version, dir string) (string, error) {
	root, err := tools.RepositoryRoot()
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs(filepath.Join(dir, "ichor-"+filepath.Base(provider)+"-manager"))
	if err != nil {
		return "", err
	}
	flags := ""
	if version != "" {
		flags = "-X main.version=" + version
	}
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", flags, "-o", path, "./"+provider)
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the %s manager: %w\n%s", provider, err, output)
	}
	return path, nil
}

// ProviderOptions say how a provider's manager runs.
type ProviderOptions struct {
	// Name tells the processes of one cluster apart, in the names of their logs. It must be unique.
	Name string

	// Program is what BuildProvider has built.
	Program string

	// Kubeconfig gives the manager its rights: UserKubeconfig of its ServiceAccount, for instance.
	Kubeconfig string

	// Webhooks is where it serves its webhooks.
	Webhooks WebhookServer

	// Args are more flags.
	Args []string

	// Env are more variables of the environment, as NAME=VALUE.
	Env []string

	// Unready has StartProvider return as soon as the process runs, for a test that ends it at any moment.
	Unready bool
}

// Provider is a provider's manager that runs as a process of its own, as in a pod.
type Provider struct {
	process *process

	// HealthURL is the address of /healthz and /readyz.
	HealthURL string

	// DiagnosticsAddress is the host and port of the diagnostics endpoint.
	DiagnosticsAddress string
}

// StartProvider starts a manager and waits until it is ready: its webhooks answer; whether it leads is another matter. The
// cluster's Stop ends it if nothing else has.
func (mc *ManagementCluster) StartProvider(ctx context.Context, options ProviderOptions) (*Provider, error) {
	health, err := mc.ports.Port()
	if err != nil {
		return nil, err
	}
	diagnostics, err := mc.ports.Port()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, providerTimeout)
	defer cancel()
	ready := answers("http://"+loopbackAddress(health)+"/readyz", nil)
	if options.Unready {
		ready = func(context.Context) error { return nil }
	}
	proc, err := start(ctx, mc.logDir, program{
		name: options.Name, path: options.Program, grace: providerGrace, env: options.Env,
		args: append([]string{
			"--kubeconfig=" + options.Kubeconfig,
			"--health-addr=" + loopbackAddress(health),
			"--diagnostics-address=" + loopbackAddress(diagnostics),
			"--webhook-port=" + strconv.Itoa(options.Webhooks.Port),
			"--webhook-cert-dir=" + options.Webhooks.CertDir,
		}, options.Args...),
		ready: ready,
	})
	if err != nil {
		return nil, err
	}
	provider := &Provider{process: proc, HealthURL: "http://" + loopbackAddress(health), DiagnosticsAddress: loopbackAddress(diagnostics)}
	mc.mu.Lock()
	defer mc.mu.Unlock()
	mc.providers = append(mc.providers, provider)
	return provider, nil
}

// Kill ends the manager as a node that dies does, and waits until it is gone.
func (p *Provider) Kill() error {
	return p.process.Kill()
}

// Stop asks the manager to end, as the kubelet does, and returns how it ended: an error when it had to be killed, had
// ended before, or failed.
func (p *Provider) Stop() error {
	if err := p.process.stop(); err != nil {
		return err
	}
	if err := p.process.Exit(); err != nil {
		return fmt.Errorf("%s: %w", p.process.name, err)
	}
	return nil
}

// Done is closed when the manager is gone, for whatever reason.
func (p *Provider) Done() <-chan struct{} { return p.process.Done() }

// PID is the process's number.
func (p *Provider) PID() int { return p.process.PID() }

// Signal sends a signal to the process, for instance syscall.SIGSTOP to have it hang.
func (p *Provider) Signal(signal syscall.Signal) error { return p.process.Signal(signal) }

// Log returns what the manager has written so far.
func (p *Provider) Log() (string, error) {
	content, err := os.ReadFile(p.process.LogFile())
	return string(content), err
}

// CopyLog writes the manager's log, with its name as a heading.
func (p *Provider) CopyLog(to io.Writer) error {
	log, err := p.Log()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(to, "log of %s:\n%s\n", p.process.name, strings.TrimRight(log, "\n"))
	return err
}
