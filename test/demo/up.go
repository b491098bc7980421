// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/maesh-dev/ichor/test/installation"
	"github.com/maesh-dev/ichor/test/tools"
)

const worldTimeout = 5 * time.Minute

// programs are built for the demo, so that it shows this checkout.
var programs = map[string]string{
	installation.Bootstrap.Account:    "./bootstrap",
	installation.ControlPlane.Account: "./controlplane",
	"clusterctl-ichor":                "./cmd/clusterctl-ichor",
	"demo":                            "./test/demo",
}

func up(ctx context.Context, s state) error {
	if pid, running := s.pid(); running {
		return fmt.Errorf("a demo is running already (process %d): end it with `make demo-down`, or look at it:\n\n%s", pid, further(s, ""))
	}

	controlPlanes, err := wantedControlPlanes()
	if err != nil {
		return err
	}

	if err := errors.Join(os.RemoveAll(s.dir), os.MkdirAll(s.path("bin"), 0o755)); err != nil {
		return err
	}

	section("Build Ichor and the test tools (the first time takes minutes, and is kept)")

	if err = build(ctx, s); err != nil {
		return err
	}

	kubectl, err := tools.Path(ctx, tools.Kubectl)
	if err != nil {
		return err
	}

	clusterctl, err := tools.Path(ctx, tools.Clusterctl)
	if err != nil {
		return err
	}

	begin := time.Now()

	section("Start a management cluster: etcd, API server, controllers, Cluster API, Ichor's two managers, and the provider of simulated machines")

	if err = startWorld(ctx, s); err != nil {
		return err
	}

	show := &show{ctx: ctx, state: s, kubectl: kubectl, clusterctl: clusterctl, controlPlanes: controlPlanes}
	if err = show.run(); err != nil {
		return fmt.Errorf("%w\nThe demo still runs: its logs are in %s; `make demo-down` ends it", err, s.path("logs"))
	}

	section("Look further")
	fmt.Fprintf(out, "  All that took %s, without the builds.\n\n", time.Since(begin).Round(time.Second))
	fmt.Fprint(out, further(s, kubectl))

	return nil
}

// controlPlanesVariable says how many control-plane machines the demo begins with.
const controlPlanesVariable = "DEMO_CONTROL_PLANES"

func wantedControlPlanes() (int, error) {
	switch value := os.Getenv(controlPlanesVariable); value {
	case "", "1":
		return 1, nil
	case "3":
		return 3, nil
	default:
		return 0, fmt.Errorf("%s=%s: say 1 or 3", controlPlanesVariable, value)
	}
}

// build builds what is missing of the test tools, and Ichor.
func build(ctx context.Context, s state) error {
	builder, err := tools.NewBuilder(os.Stderr)
	if err != nil {
		return err
	}

	for _, name := range []string{
		tools.Etcd, tools.KubeAPIServer, tools.KubeControllerManager, tools.Kubectl, tools.CAPICore, tools.CAPICoreComponents, tools.Clusterctl,
	} {
		if _, err = builder.Path(ctx, name); err != nil {
			return err
		}
	}

	for name, pkg := range programs {
		command := exec.CommandContext(ctx, "go", "build", "-o", s.path("bin/"+name), pkg)
		command.Dir = s.root

		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
	}

	return nil
}

// startWorld leaves a process behind that holds the management cluster: its parts end when it does.
func startWorld(ctx context.Context, s state) error {
	log, err := os.Create(s.path("world.log"))
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the process has its own handle

	world := exec.Command(s.path("bin/demo"), serveCommand)
	world.Dir = s.root
	world.Stdout, world.Stderr = log, log
	world.SysProcAttr = &syscall.SysProcAttr{Setsid: true}

	if err = world.Start(); err != nil {
		return fmt.Errorf("start the management cluster: %w", err)
	}

	ended := make(chan error, 1)
	go func() { ended <- world.Wait() }()

	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, worldTimeout, true, func(context.Context) (bool, error) {
		select {
		case err := <-ended:
			return false, fmt.Errorf("the management cluster has ended: %w\n%s", err, tail(s.path("world.log")))
		default:
		}

		_, err := os.Stat(s.path("ready"))

		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, fs.ErrNotExist):
			return false, nil
		default:
			return false, err
		}
	})
}

// tail is the end of a log, for an error.
func tail(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}

	lines := strings.Split(strings.TrimSpace(string(data)), "\n")

	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}
