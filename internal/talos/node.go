// SPDX-License-Identifier: Apache-2.0

package talos

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/maesh-dev/ichor/internal/etcd"
)

// Node is what a machine's node says, read once. What it did not say is unknown, and never taken for something.
type Node struct {
	// Machine that it is the node of.
	Machine string

	// Err is why the node was not observed: an *Error. Nil when it answered and was proved to be the machine's. What follows has a meaning
	// only then, but for Etcd.
	Err error

	// Address at which it answered, with the port; behind a load balancer, with that.
	Address string

	// Version of Talos, as v1.14.1.
	Version string

	// Hostname is its own name, NodeName that of its Kubernetes Node, SystemUUID its machine's. BootID is that of its boot; empty before Talos
	// 1.14, which does not tell it to a reader.
	Hostname, NodeName, SystemUUID, BootID string

	// ControlPlane says whether its configuration is that of a control-plane machine.
	ControlPlane bool

	// Stage is what it is doing, in Talos' words: booting, running, upgrading, rebooting, resetting, "shutting down". Ready is true when Talos
	// says so, and Unmet why not.
	Stage string
	Ready bool
	Unmet []Unmet

	// TimeSynced says whether it knows the time. Nil when it did not say.
	TimeSynced *bool

	// Services of Talos, by ID. Empty when it did not say.
	Services []Service

	// StaticPods of the control plane, by component. PodsKnown is false when it did not say.
	StaticPods []StaticPod
	PodsKnown  bool

	// Learner is true while its etcd member has no vote.
	Learner bool

	// Gaps are what it did not say although it answered, in words for people.
	Gaps []string

	// Etcd is what it says of etcd. When the node was not observed, it is that nothing was answered, and why.
	Etcd etcd.View

	proof     proof
	addresses []netip.Addr
}

// Unmet is a condition that keeps a node from being ready.
type Unmet struct{ Name, Reason string }

// Service is a service of Talos.
type Service struct {
	// ID as etcd, kubelet, apid.
	ID string

	// State in Talos' words: Running, Preparing, Waiting, Finished, Failed and so on.
	State string

	// Healthy is what its health check says. Nil when it has none, or has not run yet.
	Healthy *bool
}

// Running is true when the service runs, healthy or not.
func (s Service) Running() bool { return s.State == serviceRunning }

// Required is true for the services without which a node is none of Kubernetes. Others, those of extensions above all, may wait for what the
// machine does not have, such as the device of a guest agent; Talos takes a node for ready beside them once it has booted. Source: Talos,
// internal/app/machined/pkg/controllers/runtime, MachineStatusController; the two that run containers are not in its list, and nothing runs
// without them.
func (s Service) Required() bool { return slices.Contains(requiredServices, s.ID) }

var requiredServices = []string{"apid", "containerd", "cri", etcdService, "kubelet", "machined", "trustd"}

// Problem says what is wrong with the service; empty when nothing is.
func (s Service) Problem() string {
	switch {
	case s.State != serviceRunning && s.State != serviceFinished && s.State != serviceSkipped:
		return fmt.Sprintf("service %s is %s", s.ID, strings.ToLower(s.State))
	case s.Healthy != nil && !*s.Healthy && s.Running():
		return fmt.Sprintf("service %s is not healthy", s.ID)
	default:
		return ""
	}
}

// States of services. Source: Talos, internal/app/machined/pkg/system/events.
const (
	serviceRunning  = "Running"
	serviceFinished = "Finished"
	serviceSkipped  = "Skipped"
)

// StaticPod is a pod that the kubelet runs from the node's own configuration.
type StaticPod struct {
	// Component as kube-apiserver.
	Component string

	// Name of the pod.
	Name string

	// Ready is the pod's own condition.
	Ready bool

	// Problem says why it is not ready; empty when it is.
	Problem string
}

// Service finds a service by its ID.
func (n Node) Service(id string) (Service, bool) {
	for _, s := range n.Services {
		if s.ID == id {
			return s, true
		}
	}

	return Service{}, false
}

// StaticPod finds a static pod by its component.
func (n Node) StaticPod(component string) (StaticPod, bool) {
	for _, p := range n.StaticPods {
		if p.Component == component {
			return p, true
		}
	}

	return StaticPod{}, false
}

// identity tells nodes apart: two Machines at which the same comes out have one node.
func (n Node) identity() string {
	if n.BootID != "" {
		return "boot " + n.BootID
	}

	addresses := make([]string, len(n.addresses))
	for i, address := range n.addresses {
		addresses[i] = address.String()
	}

	slices.Sort(addresses)

	return fmt.Sprintf("node %s %s %s", n.SystemUUID, n.Hostname, strings.Join(addresses, ","))
}

// unobserved is a node that could not be asked.
func unobserved(machine string, err error) Node {
	known := asNodeError(err)

	return Node{Machine: machine, Err: known.of(machine), Etcd: etcd.View{Problem: known.message}}
}
