// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

const (
	namespace     = "default"
	examples      = "examples/demo"
	shownMachine  = "demo-storage-1"
	configTimeout = 4 * time.Minute
	pollPeriod    = 200 * time.Millisecond
)

// explained are values whose origin tells what layers are for.
var explained = []string{
	"SysctlConfig:/params/vm.max_map_count",
	"UserVolumeConfig/longhorn:/provisioning",
	"UnattendedInstallConfig:/installer/image",
}

// out is the terminal.
var out io.Writer = os.Stdout

func section(title string) { fmt.Fprintf(out, "\n== %s\n\n", title) }

// show applies the examples and prints what comes of them.
type show struct {
	ctx     context.Context
	state   state
	kubectl string
	client  client.Client
}

func (s *show) run() error {
	var err error
	if s.client, err = newClient(s.state.kubeconfig()); err != nil {
		return err
	}

	section("Apply examples/demo")

	if err = s.command(s.kubectl, "apply", "--server-side", "-f", examples); err != nil {
		return err
	}

	section("Wait for the machine configs")

	if err = s.waitForConfigs(); err != nil {
		return err
	}

	if err = s.command(s.kubectl, "get", "talosconfigs,machines", "-o", "wide"); err != nil {
		return err
	}

	section("The config that " + shownMachine + " gets, secrets masked")

	if err = s.printConfig(); err != nil {
		return err
	}

	section("What set three of its values, and what it covered")

	if err = s.saveBundle(); err != nil {
		return err
	}

	for _, path := range explained {
		if err = s.command(s.state.path("bin/clusterctl-ichor"), "explain", "-f", examples, "-f", bundleFile, "--machine", shownMachine, path); err != nil {
			return err
		}

		fmt.Fprintln(out)
	}

	if err = s.bootstrap(); err != nil {
		return err
	}

	return s.scale()
}

// bundleFile has the cluster's secrets, so that the command line works with them too.
const bundleFile = ".demo/demo-talos.yaml"

func (s *show) saveBundle() error {
	command := exec.CommandContext(s.ctx, s.kubectl, "get", "secret", "demo-talos", "-o", "yaml")
	command.Env = append(os.Environ(), "KUBECONFIG="+s.state.kubeconfig())

	bundle, err := command.Output()
	if err != nil {
		return fmt.Errorf("read the secrets bundle: %w", err)
	}

	return os.WriteFile(s.state.path("demo-talos.yaml"), bundle, 0o600)
}

// waitForConfigs waits until Cluster API has the data Secret of every machine.
func (s *show) waitForConfigs() error {
	var missing string

	err := wait.PollUntilContextTimeout(s.ctx, pollPeriod, configTimeout, true, func(ctx context.Context) (bool, error) {
		machines := &clusterv1.MachineList{}
		if err := s.client.List(ctx, machines, client.InNamespace(namespace)); err != nil {
			return false, err
		}

		missing = ""

		for i := range machines.Items {
			machine := &machines.Items[i]
			if machine.Spec.Bootstrap.DataSecretName == nil {
				missing += fmt.Sprintf("\n  %s: %s", machine.Name, s.reason(ctx, machine.Spec.Bootstrap.ConfigRef.Name))
			}
		}

		return missing == "" && len(machines.Items) > 0, nil
	})
	if err != nil {
		return fmt.Errorf("machines without a config: %w%s", err, missing)
	}

	return nil
}

// reason is what the TalosConfig says.
func (s *show) reason(ctx context.Context, name string) string {
	config := &bootstrapv1.TalosConfig{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, config); err != nil {
		return err.Error()
	}

	if ready := conditions.Get(config, bootstrapv1.TalosConfigReadyCondition); ready != nil {
		return ready.Message
	}

	return "no Ready condition yet"
}

// printConfig shows the data Secret itself, not a second render.
func (s *show) printConfig() error {
	secret := &corev1.Secret{}
	if err := s.client.Get(s.ctx, client.ObjectKey{Namespace: namespace, Name: shownMachine}, secret); err != nil {
		return err
	}

	provider, err := configloader.NewFromBytes(secret.Data["value"])
	if err != nil {
		return fmt.Errorf("decode the config of %s: %w", shownMachine, err)
	}

	masked, err := merge.New(provider).EncodeMasked()
	if err != nil {
		return err
	}

	_, err = out.Write(masked)

	return errors.Join(err, s.proveMasked(masked))
}

// proveMasked looks for the registry's password, which the config has and the screen must not.
func (s *show) proveMasked(masked []byte) error {
	secret := &corev1.Secret{}
	if err := s.client.Get(s.ctx, client.ObjectKey{Namespace: namespace, Name: "mirror-credentials"}, secret); err != nil {
		return err
	}

	if bytes.Contains(masked, secret.Data[bootstrapv1.RegistryPasswordKey]) {
		return errors.New("the registry's password has been shown")
	}

	return nil
}

// command runs a program and shows how to run it again.
func (s *show) command(path string, args ...string) error {
	fmt.Fprintf(out, "$ %s %s\n", name(path), strings.Join(args, " "))

	command := exec.CommandContext(s.ctx, path, args...)
	command.Dir = s.state.root
	command.Env = append(os.Environ(), "KUBECONFIG="+s.state.kubeconfig())
	command.Stdout, command.Stderr = out, out

	if err := command.Run(); err != nil {
		return fmt.Errorf("%s: %w", name(path), err)
	}

	return nil
}

// name is a program as users know it.
func name(path string) string {
	if strings.Contains(filepath.Base(path), "kubectl") {
		return "kubectl"
	}

	return filepath.Base(path)
}

// further says how to go on.
func further(s state, kubectl string) string {
	if kubectl == "" {
		kubectl = "kubectl"
	}

	ichor := s.path("bin/clusterctl-ichor")

	return fmt.Sprintf(`  export KUBECONFIG=%s
  alias kubectl=%s

  kubectl describe talosconfig %s
  kubectl explain talosconfigpatch.spec.documents.userVolumeConfig
  kubectl scale machinedeployment %s --replicas=5
  kubectl get secret %s -o jsonpath='{.data.value}' | base64 -d    # the config itself, secrets and all
  kubectl patch simmachine %s --type merge -p '{"spec":{"power":"Off"}}'    # cut a machine's power; On gives it back

  # The cluster that the machines form:
  kubectl --kubeconfig %s get nodes -o wide

  # On files; without the second, a throwaway secrets bundle is made:
  %s render -f examples/demo -f .demo/demo-talos.yaml --machine %s
  %s explain -f examples/demo -f .demo/demo-talos.yaml --machine %s
  %s validate -f examples/demo

  Logs are in %s, those of the machines in %s. End the demo with: make demo-down
`, s.kubeconfig(), kubectl, shownMachine, deployment, shownMachine, shownMachine, s.workloadKubeconfig(), ichor, shownMachine, ichor, shownMachine, ichor, s.path("logs"), s.path("machines"))
}
