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

const (
	scaling    = "examples/scaling"
	deployment = "demo-web"
)

// liveFile has the objects that configs are made of, as they are in the management cluster.
const liveFile = ".demo/live.yaml"

// liveKinds are what the command line renders and explains from, besides Secrets.
const liveKinds = "clusters,machines,talosconfigs,talosclusterconfigs,talosconfigpatches,talosstorages"

// liveSecrets are those that go into configs.
var liveSecrets = []string{"demo-talos", "mirror-credentials", "mirror-ca"}

// scale shows a MachineDeployment that grows and shrinks, and a patch in between.
func (s *show) scale() error {
	section("Scale a MachineDeployment from 0 to 2")

	if err := s.command(s.kubectl, "apply", "--server-side", "-f", scaling+"/workers.yaml"); err != nil {
		return err
	}

	if _, err := s.scaleTo(2); err != nil {
		return err
	}

	if err := s.waitForNodes(controlPlanes + storages + 2); err != nil {
		return err
	}

	if err := s.command(s.kubectl, "get", "machinedeployments,machines,talosconfigs"); err != nil {
		return err
	}

	section("Add a patch, and scale to 4: the machines that are there keep their configs, new ones get the patch")

	if err := s.command(s.kubectl, "apply", "--server-side", "-f", scaling+"/patch.yaml"); err != nil {
		return err
	}

	before, err := s.machines(s.ctx)
	if err != nil {
		return err
	}

	after, err := s.scaleTo(4)
	if err != nil {
		return err
	}

	if err := s.explainNew(before, after); err != nil {
		return err
	}

	section("Scale to 1: what belonged to the other machines is collected")

	left, err := s.scaleTo(1)
	if err != nil {
		return err
	}

	if err := s.waitUntilCollected(slices.DeleteFunc(after, func(name string) bool { return slices.Contains(left, name) })); err != nil {
		return err
	}

	return s.command(s.kubectl, "get", "machinedeployments,machines,talosconfigs")
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
		secret := &corev1.Secret{}
		if err := s.client.Get(s.ctx, client.ObjectKey{Namespace: namespace, Name: machine}, secret); err != nil {
			return err
		}

		for line := range strings.Lines(string(secret.Data["value"])) {
			if strings.Contains(line, "vm.max_map_count") {
				fmt.Fprintf(out, "in the config of %s: %s\n", machine, strings.TrimSpace(line))
			}
		}
	}

	return nil
}

// scaleTo scales the MachineDeployment, and waits until it has so many machines, each with a config.
func (s *show) scaleTo(replicas int) ([]string, error) {
	if err := s.command(s.kubectl, "scale", "machinedeployment", deployment, "--replicas", strconv.Itoa(replicas)); err != nil {
		return nil, err
	}

	var names []string

	err := wait.PollUntilContextTimeout(s.ctx, pollPeriod, configTimeout, true, func(ctx context.Context) (bool, error) {
		var err error
		if names, err = s.machines(ctx); err != nil {
			return false, err
		}

		if len(names) != replicas {
			return false, nil
		}

		for _, name := range names {
			err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.Secret{})
			if apierrors.IsNotFound(err) {
				return false, nil
			}

			if err != nil {
				return false, err
			}
		}

		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("the MachineDeployment has %d machines of %d: %w", len(names), replicas, err)
	}

	return names, nil
}

// waitUntilCollected waits until the data Secrets of machines that are gone are gone too.
func (s *show) waitUntilCollected(names []string) error {
	for _, name := range names {
		err := wait.PollUntilContextTimeout(s.ctx, pollPeriod, configTimeout, true, func(ctx context.Context) (bool, error) {
			err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.Secret{})

			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
		if err != nil {
			return fmt.Errorf("secret %s is still there: %w", name, err)
		}
	}

	return nil
}

// machines are those of the MachineDeployment.
func (s *show) machines(ctx context.Context) ([]string, error) {
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
	objects := []string{"get", liveKinds, "-o", "yaml"}
	secrets := append(append([]string{"get", "secrets"}, liveSecrets...), "-o", "yaml")

	var content []byte

	for _, args := range [][]string{objects, secrets} {
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
