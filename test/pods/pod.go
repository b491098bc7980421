// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/test/process"
)

const (
	// quick is how often a Pod is looked at that is on its way to be ready. A kubelet takes the probe's period for it; the wait
	// would be all that a start on this machine costs.
	quick = 100 * time.Millisecond

	// defaultPeriod and defaultFailures are those of a probe that does not say.
	defaultPeriod   = 10 * time.Second
	defaultFailures = 3

	// maxRestartDelay bounds the delay before a process that ends by itself is started again. A kubelet waits up to five minutes.
	maxRestartDelay = 10 * time.Second

	defaultGrace = 30 * time.Second

	// creating is the reason of a wait that ends by itself, for a Secret or a port.
	creating = "ContainerCreating"
)

// state is what there is to tell of a Pod.
type state struct {
	// waiting says why there is no process: a reason and a message. Empty while one runs.
	waiting, message string
	started          time.Time
	ready            bool
	restarts         int32
}

// pod is a Pod with its process.
type pod struct {
	runner *Runner
	dir    string
	ip     string

	// webhookPort is the port of the process that stands for the container's port of webhooks.
	webhookPort int

	// name of the Pod.
	name client.ObjectKey

	mu      sync.Mutex
	process *process.Process
	release []func() error
	state   state
	// served is set when the process has been ready: from then on its liveness is asked.
	served              bool
	readiness, liveness probeState
	retryAt             time.Time
	stopped             bool
}

// probeState is how a probe has fared.
type probeState struct {
	failures int
	asked    time.Time
}

// due tells whether the probe's period is over, and begins the next.
func (s *probeState) due(probe *corev1.Probe) bool {
	if time.Since(s.asked) < period(probe) {
		return false
	}

	s.asked = time.Now()

	return true
}

// failed counts failures in a row, and tells whether they are as many as the probe has patience for.
func (s *probeState) failed(probe *corev1.Probe, success bool) bool {
	if success {
		s.failures = 0

		return false
	}

	s.failures++

	return s.failures >= threshold(probe)
}

func newPod(r *Runner, object *corev1.Pod) (*pod, error) {
	port, err := r.options.ReservePort()
	if err != nil {
		return nil, err
	}

	return &pod{
		runner: r, webhookPort: port, name: client.ObjectKeyFromObject(object),
		dir: filepath.Join(r.options.Dir, object.Namespace, object.Name),
		// No other Pod on this machine has the port, so none has the address.
		ip: net.IPv4(127, 200, byte(port>>8), byte(port)).String(),
	}, nil
}

// next is when the Pod is to be looked at again.
func (p *pod) next() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()

	if (p.process != nil && !p.state.ready) || p.state.waiting == creating {
		return quick
	}

	return time.Second
}

// run starts the process if there is none, asks its probes, and returns what is so.
func (p *pod) run(ctx context.Context, object *corev1.Pod) state {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.stopped {
		return p.state
	}

	if p.process != nil && p.process.Ended() {
		p.ended("the process ended: " + p.process.Tail(1))
	}

	if p.process == nil {
		if time.Now().Before(p.retryAt) {
			return p.state
		}

		if err := p.start(ctx, object); err != nil {
			p.state = waitingFor(err, p.state)

			return p.state
		}
	}

	if err := p.writeSecrets(ctx, object); err != nil {
		p.state.message = err.Error()
	}

	p.probe(ctx, &object.Spec.Containers[0])

	return p.state
}

// ended notes that the process is gone, and when to start another.
func (p *pod) ended(message string) {
	delay := min(time.Second<<min(p.state.restarts, 4), maxRestartDelay)
	p.process = nil
	p.retryAt = time.Now().Add(delay)
	p.served, p.readiness, p.liveness = false, probeState{}, probeState{}
	p.state = state{waiting: "CrashLoopBackOff", message: message, restarts: p.state.restarts + 1}
}

// waitError is why a process cannot be started yet, with the reason that a kubelet would give.
type waitError struct {
	reason string
	err    error
}

func (e *waitError) Error() string { return e.err.Error() }

func waitingFor(err error, before state) state {
	reason := creating

	if known, ok := errors.AsType[*waitError](err); ok {
		reason = known.reason
	}

	return state{waiting: reason, message: err.Error(), restarts: before.restarts}
}

// probe asks readiness and liveness, each in its own period, and takes either back after as many failures as the probe says.
// Liveness is not asked before the process was ready: on a busy machine, a start may take longer than the probe has patience.
func (p *pod) probe(ctx context.Context, container *corev1.Container) {
	switch probe := container.ReadinessProbe; {
	case !p.state.ready:
		p.state.ready = p.ask(ctx, container, probe)
		p.readiness = probeState{asked: time.Now()}
	case p.readiness.due(probe):
		p.state.ready = !p.readiness.failed(probe, p.ask(ctx, container, probe))
	}

	p.served = p.served || p.state.ready

	probe := container.LivenessProbe
	if !p.served || !p.liveness.due(probe) || !p.liveness.failed(probe, p.ask(ctx, container, probe)) {
		return
	}

	message := "the liveness probe failed"
	if err := p.process.Stop(); err != nil {
		message = err.Error()
	}

	p.ended(message)
}

func period(probe *corev1.Probe) time.Duration {
	if probe == nil || probe.PeriodSeconds == 0 {
		return defaultPeriod
	}

	return time.Duration(probe.PeriodSeconds) * time.Second
}

func threshold(probe *corev1.Probe) int {
	if probe == nil || probe.FailureThreshold == 0 {
		return defaultFailures
	}

	return int(probe.FailureThreshold)
}

// ask is whether a probe succeeds. A container without one is well.
func (p *pod) ask(ctx context.Context, container *corev1.Container, probe *corev1.Probe) bool {
	if probe == nil || probe.HTTPGet == nil {
		return true
	}

	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(probe.TimeoutSeconds, 1))*time.Second)
	defer cancel()

	port, err := p.port(container, probe.HTTPGet.Port)
	if err != nil {
		return false
	}

	url := "http://" + net.JoinHostPort(p.ip, strconv.Itoa(port)) + probe.HTTPGet.Path

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}

	// As a kubelet does: any status from 200 to 399.
	return response.Body.Close() == nil && response.StatusCode >= http.StatusOK && response.StatusCode < http.StatusBadRequest
}

// port is where the process listens for a container's port.
func (p *pod) port(container *corev1.Container, wanted intstr.IntOrString) (int, error) {
	for _, port := range container.Ports {
		if port.Name != wanted.StrVal && port.ContainerPort != wanted.IntVal {
			continue
		}

		if port.Name == webhookPortName {
			return p.webhookPort, nil
		}

		return int(port.ContainerPort), nil
	}

	return 0, fmt.Errorf("container %s has no port %s", container.Name, wanted.String())
}

// kill ends the process at once.
func (p *pod) kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.process == nil {
		return errors.New("the Pod has no process")
	}

	return p.process.Kill()
}

// stop ends the process for good.
func (p *pod) stop() error {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.stopped = true

	var errs []error
	if p.process != nil && !p.process.Ended() {
		errs = append(errs, p.process.Stop())
	}

	for _, release := range p.release {
		errs = append(errs, release())
	}

	p.process, p.release = nil, nil

	return errors.Join(errs...)
}
