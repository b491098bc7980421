// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/kubeconfig"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/test/stage"
)

// The machines of examples/demo.
const (
	controlPlane  = "demo-control-plane-1"
	controlPlanes = 1
	storages      = 2
)

var clusterKey = client.ObjectKey{Namespace: namespace, Name: "demo"}

// bootstrap makes a Kubernetes cluster of the machines, which is a control-plane provider's part, and shows its Nodes.
func (s *show) bootstrap() error {
	section("Bootstrap the cluster, as `talosctl bootstrap` does, and write its kubeconfig: a control-plane provider's part, which is not there yet")

	address, err := s.waitForAddress()
	if err != nil {
		return err
	}

	fmt.Fprintf(out, "Bootstrap on %s (%s)\n", controlPlane, address)

	err = wait.PollUntilContextTimeout(s.ctx, pollPeriod, configTimeout, true, func(ctx context.Context) (bool, error) {
		err := s.callBootstrap(ctx, address)
		// It is still installing, or booting, or an earlier try got through and its answer was lost.
		again := map[codes.Code]bool{codes.Unavailable: true, codes.FailedPrecondition: true, codes.Unimplemented: true}[status.Code(err)]

		return err == nil || status.Code(err) == codes.AlreadyExists, ignoreIf(again, err)
	})
	if err != nil {
		return fmt.Errorf("bootstrap %s: %w", controlPlane, err)
	}

	if err := stage.CreateKubeconfig(s.ctx, s.client, clusterKey); err != nil {
		return err
	}

	content, err := kubeconfig.FromSecret(s.ctx, s.client, clusterKey)
	if err != nil {
		return err
	}

	if err := os.WriteFile(s.state.workloadKubeconfig(), content, 0o600); err != nil {
		return err
	}

	section("Its Nodes, and the Machines that they are")

	if err := s.waitForNodes(controlPlanes + storages); err != nil {
		return err
	}

	if err := stage.WaitForNodeRefs(s.ctx, s.client, clusterKey, configTimeout); err != nil {
		return err
	}

	return s.command(s.kubectl, "get", "machines", "-o", "wide")
}

func ignoreIf(ignore bool, err error) error {
	if ignore || status.Code(err) == codes.AlreadyExists {
		return nil
	}

	return err
}

func (s *show) callBootstrap(ctx context.Context, address string) error {
	talos, err := stage.Talos(ctx, s.client, clusterKey, address)
	if err != nil {
		return err
	}
	defer talos.Close() //nolint:errcheck // The call has been answered.

	return talos.Bootstrap(ctx, &machineapi.BootstrapRequest{})
}

// waitForAddress waits until the control-plane machine runs, and returns where.
func (s *show) waitForAddress() (string, error) {
	address := ""

	err := wait.PollUntilContextTimeout(s.ctx, pollPeriod, configTimeout, true, func(ctx context.Context) (bool, error) {
		machine := &clusterv1.Machine{}
		if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: controlPlane}, machine); err != nil {
			return false, err
		}

		for _, each := range machine.Status.Addresses {
			if each.Type == clusterv1.MachineInternalIP {
				address = each.Address
			}
		}

		return address != "", nil
	})
	if err != nil {
		return "", fmt.Errorf("machine %s has no address: %w", controlPlane, err)
	}

	return address, nil
}

// waitForNodes waits until so many Nodes are ready, and shows them.
func (s *show) waitForNodes(count int) error {
	ready := 0

	err := wait.PollUntilContextTimeout(s.ctx, pollPeriod, configTimeout, true, func(ctx context.Context) (bool, error) {
		workload, err := stage.Kubernetes(ctx, s.client, clusterKey)
		if err != nil {
			return false, nil //nolint:nilerr // The API server is starting.
		}

		nodes := &corev1.NodeList{}
		if err := workload.List(ctx, nodes); err != nil {
			return false, nil //nolint:nilerr // as above
		}

		ready = 0

		for _, node := range nodes.Items {
			for _, condition := range node.Status.Conditions {
				if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
					ready++
				}
			}
		}

		return ready == count, nil
	})
	if err != nil {
		return fmt.Errorf("the cluster has %d Nodes of %d that are ready: %w", ready, count, err)
	}

	return s.command(s.kubectl, "--kubeconfig", s.state.workloadKubeconfig(), "get", "nodes", "-o", "wide")
}
