// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"fmt"
	"slices"
	"strings"

	runtimeres "github.com/siderolabs/talos/pkg/machinery/resources/runtime"
)

// booted ends the sequence of the boot, unless another has begun. It ends when all services are up: a control-plane node is
// booting for as long as it waits for its etcd to be bootstrapped, and any node while the service of an extension waits, or its kubelet is not healthy. That a real one
// reboots after BootTimeout, an hour and ten minutes, is not played. Source: Talos, v1alpha1 sequencer, StartAllServices; its issue 14373.
func (b *boot) booted() {
	b.mu.Lock()
	b.started = true
	b.mu.Unlock()
	b.publish()
}

// seeBooted tells whether the boot ends now, since all services are up that it has started.
func (b *boot) seeBooted() bool {
	for _, s := range b.services() {
		if s.state != "Finished" && (!s.running || !s.healthy) {
			return false
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.started || b.stage != runtimeres.MachineStageBooting {
		return false
	}
	b.stage = runtimeres.MachineStageRunning
	return true
}

// unmet are the conditions that keep the node from being ready. Source of the names: Talos,
// internal/app/machined/pkg/controllers/runtime, MachineStatusController.
func (b *boot) unmet() []runtimeres.UnmetCondition {
	var unmet []runtimeres.UnmetCondition
	config := b.config()
	if config == nil {
		return nil
	}
	if b.node.Faults().TimeUnsynced {
		unmet = append(unmet, runtimeres.UnmetCondition{Name: "time", Reason: "not synchronized yet"})
	}
	var down []string
	for _, service := range b.services() {
		switch {
		case !service.running && slices.Contains(requiredServices, service.id):
			down = append(down, service.id+" not running")
		case service.running && !service.healthy:
			down = append(down, service.id+" not healthy")
		}
	}
	if len(down) > 0 {
		unmet = append(unmet, runtimeres.UnmetCondition{Name: "services", Reason: strings.Join(down, ", ")})
	}
	if b.control != nil {
		pods := b.runningPods()
		for _, one := range config.components(b.node) {
			if !pods[one.id].ready {
				unmet = append(unmet, runtimeres.UnmetCondition{Name: "staticPods", Reason: systemNamespace + "/" + one.id + " not ready"})
			}
		}
	}
	b.mu.Lock()
	registered := b.registered || !b.node.world.kubernetes()
	b.mu.Unlock()
	if !registered || b.nodeNotReady() {
		reason := fmt.Sprintf("node %q is not ready", config.nodename(b.node))
		unmet = append(unmet, runtimeres.UnmetCondition{Name: "nodeReady", Reason: reason})
	}
	return unmet
}

// nodeNotReady tells whether the kubelet finds its Node not ready.
func (b *boot) nodeNotReady() bool {
	faults := b.node.Faults()
	return faults.NodeNotReady || imageMatches(b.image, faults.NeverReady)
}
