// SPDX-License-Identifier: Apache-2.0

package talos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	configres "github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/hardware"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	runtimeres "github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	timeres "github.com/siderolabs/talos/pkg/machinery/resources/time"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// readFacts asks a node who it is and how it is, all at once.
func (s *session) readFacts(ctx context.Context) (facts, error) {
	var (
		f     facts
		reads errgroup.Group
	)

	reads.Go(func() error {
		return s.ask(ctx, func(ctx context.Context) error {
			response, err := s.conn.machine.Version(ctx, &emptypb.Empty{})
			if len(response.GetMessages()) > 0 {
				f.version = response.GetMessages()[0].GetVersion().GetTag()
			}

			return err
		})
	})
	reads.Go(func() error {
		return read(ctx, s, runtimeres.NewMachineStatus(), func(r *runtimeres.MachineStatus) {
			f.stage, f.ready = r.TypedSpec().Stage.String(), r.TypedSpec().Status.Ready
			for _, unmet := range r.TypedSpec().Status.UnmetConditions {
				f.unmet = append(f.unmet, Unmet{Name: unmet.Name, Reason: unmet.Reason})
			}
		})
	})
	reads.Go(func() error {
		return read(ctx, s, k8s.NewNodename(k8s.NamespaceName, k8s.NodenameID), func(r *k8s.Nodename) { f.nodeName = r.TypedSpec().Nodename })
	})
	reads.Go(func() error {
		return read(ctx, s, network.NewHostnameStatus(network.NamespaceName, network.HostnameID), func(r *network.HostnameStatus) { f.hostname = r.TypedSpec().Hostname })
	})
	reads.Go(func() error {
		return read(ctx, s, network.NewNodeAddress(network.NamespaceName, network.NodeAddressCurrentID), func(r *network.NodeAddress) {
			for _, prefix := range r.TypedSpec().Addresses {
				f.addresses = append(f.addresses, prefix.Addr().Unmap())
			}
		})
	})
	reads.Go(func() error {
		return read(ctx, s, hardware.NewSystemInformation(hardware.SystemInformationID), func(r *hardware.SystemInformation) { f.uuid = r.TypedSpec().UUID })
	})
	reads.Go(func() error {
		return read(ctx, s, configres.NewMachineType(), func(r *configres.MachineType) { f.controlPlane = r.MachineType().IsControlPlane() })
	})
	reads.Go(func() error {
		return read(ctx, s, timeres.NewStatus(), func(r *timeres.Status) { f.timeSynced = new(r.TypedSpec().Synced) })
	})
	reads.Go(func() error {
		err := read(ctx, s, runtimeres.NewBootID(), func(r *runtimeres.BootID) { f.bootID = r.TypedSpec().BootID })
		if errors.Is(err, ErrRefused) || errors.Is(err, ErrUnsupported) {
			return nil // Talos before 1.14 does not have it
		}

		return err
	})

	err := reads.Wait()

	return f, err
}

// read reads one resource. One that does not exist is left as it is.
func read[T resource.Resource](ctx context.Context, s *session, wanted T, take func(T)) error {
	return s.ask(ctx, func(ctx context.Context) error {
		found, err := safe.StateGet[T](ctx, s.conn.state, wanted.Metadata())

		switch {
		case state.IsNotFoundError(err):
			return nil
		case err != nil:
			return err
		}

		take(found)

		return nil
	})
}

// observe asks the node everything else. What it does not say is a gap.
func (s *session) observe(ctx context.Context) Node {
	f := s.facts
	node := Node{
		Machine: s.m.Name, Address: s.way.String(), Version: f.version,
		Hostname: f.hostname, NodeName: f.nodeName, SystemUUID: f.uuid, BootID: f.bootID, ControlPlane: f.controlPlane,
		Stage: f.stage, Ready: f.ready, Unmet: f.unmet, TimeSynced: f.timeSynced,
		proof: s.proof, addresses: f.addresses,
	}

	var (
		services, pods error
		reads          errgroup.Group
	)

	reads.Go(func() error {
		node.Services, services = s.readServices(ctx)

		return nil
	})

	if f.controlPlane {
		reads.Go(func() error {
			node.StaticPods, pods = s.readStaticPods(ctx)
			node.PodsKnown = pods == nil

			return nil
		})
	}

	_ = reads.Wait() // their errors are gaps

	node.gap("its services", services)
	node.gap("its static pods", pods)

	if !f.controlPlane {
		return node
	}

	s.observeEtcd(ctx, &node)

	if owner := s.nodes.ownerOfMember(s.m, node.Etcd.Self); owner != "" && s.proof < byUUID {
		return unobserved(s.m.Name, &nodeError{ErrAnotherNode, fmt.Sprintf("the node of Machine %s answers: it is etcd member %s", owner, node.Etcd.Self)})
	}

	return node
}

func (n *Node) gap(what string, err error) {
	if err != nil {
		n.Gaps = append(n.Gaps, fmt.Sprintf("%s: %s", what, asNodeError(err).message))
	}
}

func (s *session) readServices(ctx context.Context) ([]Service, error) {
	var services []Service

	err := s.ask(ctx, func(ctx context.Context) error {
		response, err := s.conn.machine.ServiceList(ctx, &emptypb.Empty{})
		if err != nil {
			return err
		}

		for _, message := range response.GetMessages() {
			for _, info := range message.GetServices() {
				services = append(services, serviceOf(info))
			}
		}

		return nil
	})

	slices.SortFunc(services, func(a, b Service) int { return strings.Compare(a.ID, b.ID) })

	return services, err
}

func serviceOf(info *machineapi.ServiceInfo) Service {
	s := Service{ID: info.GetId(), State: info.GetState()}
	if health := info.GetHealth(); health != nil && !health.GetUnknown() {
		s.Healthy = new(health.GetHealthy())
	}

	return s
}

// components are the static pods of Talos' own.
var components = []string{k8s.APIServerID, k8s.ControllerManagerID, k8s.SchedulerID}

func (s *session) readStaticPods(ctx context.Context) ([]StaticPod, error) {
	var pods []StaticPod

	err := s.ask(ctx, func(ctx context.Context) error {
		list, err := safe.StateListAll[*k8s.StaticPodStatus](ctx, s.conn.state)
		if err != nil {
			return err
		}

		for found := range list.All() {
			pod, err := staticPodOf(found)
			if err != nil {
				return status.Error(codes.Internal, err.Error())
			}

			pods = append(pods, pod)
		}

		return nil
	})

	slices.SortFunc(pods, func(a, b StaticPod) int { return strings.Compare(a.Name, b.Name) })

	return pods, err
}

func staticPodOf(found *k8s.StaticPodStatus) (StaticPod, error) {
	_, name, _ := strings.Cut(found.Metadata().ID(), "/")
	pod := StaticPod{Name: name, Component: name}

	for _, component := range components {
		if strings.HasPrefix(name, component+"-") {
			pod.Component = component
		}
	}

	var said corev1.PodStatus
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.TypedSpec().PodStatus, &said); err != nil {
		return pod, fmt.Errorf("the status of static pod %s cannot be read", name)
	}

	pod.Ready = slices.ContainsFunc(said.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
	if !pod.Ready {
		pod.Problem = podProblem(&said)
	}

	return pod, nil
}

// podProblem says why a pod is not ready. Messages of the kubelet are left out: there are times and counts in them.
func podProblem(said *corev1.PodStatus) string {
	for _, container := range said.ContainerStatuses {
		switch {
		case container.State.Waiting != nil && container.State.Waiting.Reason != "":
			return fmt.Sprintf("container %s waits: %s", container.Name, container.State.Waiting.Reason)
		case container.State.Terminated != nil:
			return fmt.Sprintf("container %s has ended: %s", container.Name, container.State.Terminated.Reason)
		}
	}

	if said.Phase != corev1.PodRunning && said.Phase != "" {
		return "it is " + strings.ToLower(string(said.Phase))
	}

	return "it is not ready"
}

// asNodeError finds the class of an error of this package; another is a failure.
func asNodeError(err error) *nodeError {
	if known, ok := errors.AsType[*nodeError](err); ok {
		return known
	}

	return &nodeError{ErrFailed, messageOf(err)}
}
