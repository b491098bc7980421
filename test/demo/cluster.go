// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/kubeconfig"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/test/stage"
)

// The cluster that is made from the template, and what the template calls its parts.
const (
	cluster      = "demo"
	controlPlane = cluster + "-control-plane"
	deployment   = cluster + "-workers"
	kubernetes   = "v1.36.1"
	template     = "templates/cluster-template.yaml"
	patches      = "examples/patches"

	// manifests is what clusterctl makes of the template.
	manifests = ".demo/cluster.yaml"

	// workers is how many there are at first.
	workers = 2
)

var clusterKey = client.ObjectKey{Namespace: namespace, Name: cluster}

// create makes a cluster from the template, and shows what happens until it runs.
func (s *show) create() error {
	section(fmt.Sprintf("Make a cluster from the template: %s and %d workers", machinesOf(s.controlPlanes), workers))

	if err := s.generate(); err != nil {
		return err
	}

	// A machine's config is made once, so what all of them get comes first.
	for _, file := range []string{patches + "/every-machine.yaml", manifests} {
		if err := s.command(s.kubectl, "apply", "--server-side", "-f", file); err != nil {
			return err
		}
	}

	section("What happens, and why: status.plan of the TalosControlPlane each time that it changes")

	if err := s.follow(s.controlPlanes, workers); err != nil {
		return err
	}

	fmt.Fprintln(out)

	if err := s.command(s.kubectl, "get", "taloscontrolplanes,machinedeployments,machines"); err != nil {
		return err
	}

	section("The Kubernetes cluster that these machines are")

	content, err := kubeconfig.FromSecret(s.ctx, s.client, clusterKey)
	if err != nil {
		return err
	}

	if err := os.WriteFile(s.state.workloadKubeconfig(), content, 0o600); err != nil {
		return err
	}

	return s.nodes()
}

// generate has clusterctl make the manifests.
func (s *show) generate() error {
	args := []string{
		"generate", "cluster", cluster, "--from", template, "--target-namespace", namespace, "--kubernetes-version", kubernetes,
		"--control-plane-machine-count", strconv.Itoa(s.controlPlanes), "--worker-machine-count", strconv.Itoa(workers),
	}
	fmt.Fprintf(out, "$ clusterctl %s > %s\n", strings.Join(args, " "), manifests)

	command := exec.CommandContext(s.ctx, s.clusterctl, args...)
	command.Dir = s.state.root
	// Nothing of the user's own configuration, and no search for a newer clusterctl.
	command.Env = append(os.Environ(), "HOME="+s.state.dir, "XDG_CONFIG_HOME="+s.state.dir, "CLUSTERCTL_DISABLE_VERSIONCHECK=true")
	command.Stderr = out

	content, err := command.Output()
	if err != nil {
		return fmt.Errorf("clusterctl generate: %w", err)
	}

	return os.WriteFile(s.state.path("cluster.yaml"), content, 0o600)
}

// scaleControlPlane takes the control plane from one machine to three, or back.
func (s *show) scaleControlPlane() error {
	to := 3
	if s.controlPlanes == 3 {
		to = 1
	}

	section(fmt.Sprintf("Scale the control plane to %d: etcd takes members in, or lets them go, one at a time", to))

	if err := s.command(s.kubectl, "scale", "taloscontrolplane", controlPlane, "--replicas", strconv.Itoa(to)); err != nil {
		return err
	}

	if err := s.follow(to, -1); err != nil {
		return err
	}

	members, err := s.members()
	if err != nil {
		return err
	}

	fmt.Fprintf(out, "\nVoting members of etcd: %s\n\n", strings.Join(members, ", "))

	return s.nodes()
}

// members are the names of the voting members of etcd, as the first control-plane machine that answers has them.
func (s *show) members() ([]string, error) {
	list := &clusterv1.MachineList{}
	if err := s.client.List(s.ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}

	err := errors.New("no control-plane machine has an address")

	for i := range list.Items {
		machine := &list.Items[i]
		if !util.IsControlPlaneMachine(machine) {
			continue
		}

		for _, each := range machine.Status.Addresses {
			if each.Type != clusterv1.MachineInternalIP {
				continue
			}

			var names []string
			if names, err = s.membersAt(each.Address); err == nil {
				return names, nil
			}
		}
	}

	return nil, fmt.Errorf("members of etcd: %w", err)
}

func (s *show) membersAt(address string) ([]string, error) {
	talos, err := stage.Talos(s.ctx, s.client, clusterKey, address)
	if err != nil {
		return nil, err
	}
	defer talos.Close() //nolint:errcheck // The call has been answered.

	response, err := talos.EtcdMemberList(s.ctx, &machineapi.EtcdMemberListRequest{})
	if err != nil {
		return nil, err
	}

	var names []string

	for _, message := range response.GetMessages() {
		for _, member := range message.GetMembers() {
			if !member.GetIsLearner() {
				names = append(names, member.GetHostname())
			}
		}
	}

	slices.Sort(names)

	return names, nil
}

// nodes shows those of the cluster.
func (s *show) nodes() error {
	return s.command(s.kubectl, "--kubeconfig", s.state.workloadKubeconfig(), "get", "nodes", "-o", "wide")
}

func machinesOf(controlPlanes int) string {
	if controlPlanes == 1 {
		return "one control-plane machine"
	}

	return fmt.Sprintf("%d control-plane machines", controlPlanes)
}
