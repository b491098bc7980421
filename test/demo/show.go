// SPDX-License-Identifier: Apache-2.0

package main

import (
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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
	"github.com/maesh-dev/ichor/test/invariants"
)

const (
	namespace  = "default"
	pollPeriod = 200 * time.Millisecond
)

// out is the terminal.
var out io.Writer = os.Stdout

func section(title string) { fmt.Fprintf(out, "\n== %s\n\n", title) }

// show makes a cluster, changes it, and prints what comes of that.
type show struct {
	ctx                 context.Context
	state               state
	kubectl, clusterctl string
	client              client.WithWatch

	// controlPlanes is how many control-plane machines there are at first.
	controlPlanes int
}

func (s *show) run() error {
	var err error
	if s.client, err = newClient(s.state.kubeconfig()); err != nil {
		return err
	}

	for _, step := range []func() error{s.create, s.showConfig, s.growWorkers, s.scaleControlPlane, s.shrinkWorkers} {
		if err := step(); err != nil {
			return err
		}
	}

	return nil
}

// showConfig shows the data Secret of a worker itself, not a second render.
func (s *show) showConfig() error {
	names, err := s.workers(s.ctx)
	if err != nil {
		return err
	}

	section("The config that " + names[0] + " got, secrets masked")

	config, err := s.config(names[0])
	if err != nil {
		return err
	}

	provider, err := configloader.NewFromBytes(config)
	if err != nil {
		return fmt.Errorf("decode the config of %s: %w", names[0], err)
	}

	masked, err := merge.New(provider).EncodeMasked()
	if err != nil {
		return err
	}

	if err := s.proveMasked(masked); err != nil {
		return err
	}

	_, err = out.Write(masked)

	return err
}

// config is the content of a machine's data Secret.
func (s *show) config(machine string) ([]byte, error) {
	secret := &corev1.Secret{}
	err := s.client.Get(s.ctx, client.ObjectKey{Namespace: namespace, Name: machine}, secret)

	return secret.Data["value"], err
}

// proveMasked looks for the cluster's secrets, some of which the config has and the screen must not.
func (s *show) proveMasked(masked []byte) error {
	secret := &corev1.Secret{}
	if err := s.client.Get(s.ctx, client.ObjectKey{Namespace: namespace, Name: liveSecret}, secret); err != nil {
		return err
	}

	texts := invariants.Texts{}
	if err := texts.AddSecret(secret); err != nil {
		return err
	}

	if len(texts) == 0 {
		return fmt.Errorf("secret %s has no secrets", liveSecret)
	}

	for text, origin := range texts {
		if strings.Contains(string(masked), text) {
			return errors.New("a secret would have been shown: " + origin)
		}
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

	return fmt.Sprintf(`  export KUBECONFIG=%[1]s
  alias kubectl=%[2]s

  kubectl get taloscontrolplanes -o wide                     # what happens next, or what blocks it
  kubectl scale taloscontrolplane %[3]s --replicas=5
  kubectl delete machine ...                                 # a control-plane machine: etcd lets its member go first
  kubectl scale machinedeployment %[4]s --replicas=5
  kubectl patch simmachine ... --type merge -p '{"spec":{"power":"Off"}}'    # cut a machine's power; On gives it back
  kubectl explain talosconfigpatch.spec.documents.userVolumeConfig
  kubectl get secret ... -o jsonpath='{.data.value}' | base64 -d    # by a machine's name: its config itself, secrets and all

  # The cluster that the machines form:
  kubectl --kubeconfig %[5]s get nodes -o wide

  # On files: those of the cluster above, and an example with registries, storage and a patch in each layer:
  %[6]s explain -f %[7]s --machine ...
  %[6]s render -f examples/demo --machine demo-storage-1
  %[6]s validate -f examples/demo

  Logs are in %[8]s, those of the machines in %[9]s. End the demo with: make demo-down
`, s.kubeconfig(), kubectl, controlPlane, deployment, s.workloadKubeconfig(), s.path("bin/clusterctl-ichor"), liveFile, s.path("logs"), s.path("machines"))
}
