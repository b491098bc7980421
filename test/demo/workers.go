// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// liveFile has the objects that configs are made of, as they are in the management cluster.
const liveFile = ".demo/live.yaml"

// liveKinds are what the command line renders and explains from, besides Secrets.
const liveKinds = "clusters,machines,talosconfigs,talosclusterconfigs,talosconfigpatches"

// liveSecret has the secrets that go into configs.
const liveSecret = cluster + "-talos"

// growWorkers shows a patch that reaches the machines which are made after it, and what it covers.
func (s *show) growWorkers() error {
	section("Patch the workers, and add one: those that are there keep their configs, the new one gets the patch")

	if err := s.command(s.kubectl, "apply", "--server-side", "-f", patches+"/workers.yaml"); err != nil {
		return err
	}

	before, err := s.workers(s.ctx)
	if err != nil {
		return err
	}

	after, err := s.scaleTo(workers + 1)
	if err != nil {
		return err
	}

	return s.explainNew(before, after)
}

// shrinkWorkers shows that what belonged to machines goes with them.
func (s *show) shrinkWorkers() error {
	section("Scale the workers to 1: what belonged to the others is collected")

	before, err := s.workers(s.ctx)
	if err != nil {
		return err
	}

	left, err := s.scaleTo(1)
	if err != nil {
		return err
	}

	if err := s.waitUntilCollected(slices.DeleteFunc(before, func(name string) bool { return slices.Contains(left, name) })); err != nil {
		return err
	}

	return s.command(s.kubectl, "get", "taloscontrolplanes,machinedeployments,machines,talosconfigs")
}

// explainNew explains a value of a machine that was not there before, and shows the same line in the config that it got.
func (s *show) explainNew(before, after []string) error {
	name := after[slices.IndexFunc(after, func(name string) bool { return !slices.Contains(before, name) })]
	old := before[0]

	if err := s.saveLive(); err != nil {
		return err
	}

	if err := s.command(s.state.path("bin/clusterctl-ichor"), "explain", "-f", liveFile, "--machine", name, "SysctlConfig:/params/vm.max_map_count"); err != nil {
		return err
	}

	fmt.Fprintln(out)

	for _, machine := range []string{old, name} {
		config, err := s.config(machine)
		if err != nil {
			return err
		}

		for line := range strings.Lines(string(config)) {
			if strings.Contains(line, "vm.max_map_count") {
				fmt.Fprintf(out, "in the config of %s: %s\n", machine, strings.TrimSpace(line))
			}
		}
	}

	return nil
}

// scaleTo scales the MachineDeployment, and waits until it has so many machines, each of them with its Node.
func (s *show) scaleTo(replicas int) ([]string, error) {
	if err := s.command(s.kubectl, "scale", "machinedeployment", deployment, "--replicas", strconv.Itoa(replicas)); err != nil {
		return nil, err
	}

	var names []string

	err := wait.PollUntilContextTimeout(s.ctx, pollPeriod, clusterTimeout, true, func(ctx context.Context) (bool, error) {
		var err error
		if names, err = s.workers(ctx); err != nil {
			return false, err
		}

		available, err := s.availableWorkers(ctx)

		return len(names) == replicas && available == replicas, err
	})
	if err != nil {
		return nil, fmt.Errorf("the MachineDeployment has %d machines of %d, or not all are available: %w", len(names), replicas, err)
	}

	return names, nil
}

// waitUntilCollected waits until the data Secrets of machines that are gone are gone too.
func (s *show) waitUntilCollected(names []string) error {
	for _, name := range names {
		err := wait.PollUntilContextTimeout(s.ctx, pollPeriod, clusterTimeout, true, func(ctx context.Context) (bool, error) {
			err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.Secret{})

			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
		if err != nil {
			return fmt.Errorf("secret %s is still there: %w", name, err)
		}
	}

	return nil
}

// workers are the Machines of the MachineDeployment.
func (s *show) workers(ctx context.Context) ([]string, error) {
	list := &clusterv1.MachineList{}
	if err := s.client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: deployment}); err != nil {
		return nil, err
	}

	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}

	return names, nil
}

// saveLive writes the objects of the management cluster into a file, for the command line.
func (s *show) saveLive() error {
	var content []byte

	for _, args := range [][]string{{"get", liveKinds, "-o", "yaml"}, {"get", "secret", liveSecret, "-o", "yaml"}} {
		fmt.Fprintf(out, "$ kubectl %s >> %s\n", strings.Join(args, " "), liveFile)

		command := exec.CommandContext(s.ctx, s.kubectl, args...)
		command.Env = append(os.Environ(), "KUBECONFIG="+s.state.kubeconfig())

		got, err := command.Output()
		if err != nil {
			return fmt.Errorf("read the objects of the management cluster: %w", err)
		}

		content = append(append(content, "---\n"...), got...)
	}

	return os.WriteFile(s.state.path("live.yaml"), content, 0o600)
}
