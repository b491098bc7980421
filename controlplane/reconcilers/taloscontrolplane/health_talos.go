// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/prose"
	"github.com/maesh-dev/ichor/internal/talos"
)

// talosHealth is as strict as Talos itself, but for a Node that is not ready as long as no other machine's is either: that is how a cluster
// looks that has no network plugin yet, or one that fails everywhere. Etcd and the Kubernetes control plane do without, and the plugin may be
// what comes last.
func talosHealth(node talos.Node, othersReady bool) metav1.Condition {
	var problems, notes []string

	idle := waiting(node)

	switch {
	case node.Stage == bootingStage && len(idle) > 0:
		problems = append(problems, fmt.Sprintf("the node is booting, and Talos waits for what it is to run: %s. Give the machine what that needs, "+
			"or boot it without: Talos reboots it when it has waited for 70 minutes", prose.Named(idle)))
	case node.Stage != "" && node.Stage != runningStage:
		problems = append(problems, "the node is "+node.Stage)
	default:
		notes = idle
	}

	if !node.Ready {
		some, note := unmet(node, othersReady)
		problems = append(problems, some...)

		if note != "" {
			notes = append(notes, note)
		} else if len(problems) == 0 {
			problems = append(problems, "the node is not ready")
		}
	}

	for _, service := range node.Services {
		if problem := service.Problem(); problem != "" && (service.Required() || service.Running()) {
			problems = append(problems, problem)
		}
	}

	if node.TimeSynced != nil && !*node.TimeSynced {
		problems = append(problems, "the time is not synchronized: see that it reaches its time servers (talosctl get timeservers)")
	}

	if len(problems) == 0 {
		return yes(controlplanev1.MachineTalosHealthyCondition, controlplanev1.MachineHealthyReason, sentence(prose.Named(notes)))
	}

	return no(controlplanev1.MachineTalosHealthyCondition, controlplanev1.MachineNotHealthyReason, sentence(prose.Named(problems)))
}

// waiting are the services that do not run and that Kubernetes does without, each with its state.
func waiting(node talos.Node) []string {
	var out []string

	for _, service := range node.Services {
		if problem := service.Problem(); problem != "" && !service.Required() && !service.Running() {
			out = append(out, problem)
		}
	}

	return out
}

// unmet is what Talos says keeps a node from being ready, and a note about a Node that is not ready while no other is.
func unmet(node talos.Node, othersReady bool) (problems []string, note string) {
	for _, each := range node.Unmet {
		if each.Name == nodeReadyCheck && !othersReady {
			note = joined("no Node of the control plane is ready. Install a network plugin if the cluster has none (network.cni of its TalosClusterConfig)", each.Reason)

			continue
		}

		problems = append(problems, joined(each.Name, each.Reason))
	}

	return problems, note
}

// Talos' words for what a node that has booted, and one that has not, is doing, and for its check of the Kubernetes Node.
const (
	runningStage   = "running"
	bootingStage   = "booting"
	nodeReadyCheck = "nodeReady"
)

// readyNodes is how many nodes of ours say that their Kubernetes Node is ready.
func (o *observation) readyNodes() int {
	ready := 0

	for i, m := range o.machines {
		if last, asked := o.plane.views[m.object.UID]; asked && o.nodes != nil && o.snapshot.Machines[i].Ours && nodeReady(last.node) {
			ready++
		}
	}

	return ready
}

// nodeReady is true when a node has booted and Talos finds its Kubernetes Node ready.
func nodeReady(node talos.Node) bool {
	return node.Err == nil && node.Stage == runningStage &&
		!slices.ContainsFunc(node.Unmet, func(unmet talos.Unmet) bool { return unmet.Name == nodeReadyCheck })
}

// misnamed says that a node calls itself otherwise than its TalosConfig wants it to be called; empty when it does not. That is no fault, since
// a patch may name it, and nothing depends on it: members are known by their IDs, Nodes by their provider IDs.
func misnamed(spec *bootstrapv1.TalosConfigSpec, machine string, node talos.Node) string {
	// What follows a dot in the name is the domain.
	wanted, _, _ := strings.Cut(machine, ".")
	if spec.Hostname.Source != bootstrapv1.HostnameSourceMachineName || node.Hostname == "" || strings.EqualFold(node.Hostname, wanted) {
		return ""
	}

	return fmt.Sprintf("The host name is %s, and not that of the Machine, as hostname.source of its TalosConfig wants it: if no patch sets it, see what does. "+
		"Nothing is held up by it", node.Hostname)
}

// noteHostname adds a note to TalosHealthy.
func noteHostname(all []metav1.Condition, note string) {
	for i := range all {
		if all[i].Type == controlplanev1.MachineTalosHealthyCondition && note != "" {
			all[i].Message = strings.TrimPrefix(all[i].Message+". "+note, ". ")
		}
	}
}
