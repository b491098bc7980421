// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// service is one of the node's services.
type service struct {
	id      string
	state   string
	running bool
	healthy bool
}

// extensionServices are the services that known system extensions bring along.
var extensionServices = map[string]string{"iscsi-tools": "ext-iscsid", "qemu-guest-agent": "ext-qemu-guest-agent", "tailscale": "ext-tailscale"}

// serviceHistory is what happened to the services. Its zero value is empty.
type serviceHistory struct {
	mu      sync.Mutex
	entries map[string][]*machine.ServiceEvent
	// stopped are those that a caller stopped.
	stopped map[string]bool
}

// services are the ones that a node runs.
func (b *boot) services() []service {
	ids := []string{"apid", "auditd", "containerd", "machined", "syslogd", "udevd"}
	c := b.config()
	if c != nil {
		ids = append(ids, "cri", "kubelet")
		for _, name := range b.node.world.options.Schematics[b.image.schematic] {
			if id := extensionServices[shortName(name)]; id != "" {
				ids = append(ids, id)
			}
		}
	}
	if c != nil && c.controlPlane() {
		ids = append(ids, "etcd", "trustd")
	}
	slices.Sort(ids)
	var all []service
	for _, id := range ids {
		s := service{id: id, state: "Running", running: true, healthy: true}
		member := b.node.member()
		switch {
		case id == "etcd" && (member == nil || !member.running()):
			s = service{id: id, state: b.etcdState()}
		case b.waits(id):
			s = service{id: id, state: "Waiting"}
		case b.stopped(id):
			s = service{id: id, state: "Finished"}
		case id == "kubelet" && imageMatches(b.image, b.node.Faults().NeverReady):
			s.healthy = false
		}
		all = append(all, s)
	}
	return all
}

// waits tells whether a service waits for what is not there.
func (b *boot) waits(id string) bool {
	name := b.node.Faults().ServiceWaits
	return name != "" && id == extensionServices[name]
}

// requiredServices are those without which Talos does not find a control-plane node ready. Source: Talos,
// internal/app/machined/pkg/controllers/runtime, MachineStatusController.
var requiredServices = []string{"apid", "etcd", "kubelet", "machined", "trustd"}

func (b *boot) etcdState() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left {
		return "Finished"
	}
	return "Preparing"
}

func (b *boot) stopped(id string) bool {
	b.history.mu.Lock()
	defer b.history.mu.Unlock()
	return b.history.stopped[id]
}

// serviceRuns tells whether a service runs.
func (b *boot) serviceRuns(id string) bool {
	return slices.ContainsFunc(b.services(), func(s service) bool { return s.id == id && s.running })
}

var serviceStates = map[machine.ServiceStateEvent_Action]string{
	machine.ServiceStateEvent_PREPARING: "Preparing", machine.ServiceStateEvent_WAITING: "Waiting",
	machine.ServiceStateEvent_STARTING: "Starting", machine.ServiceStateEvent_RUNNING: "Running",
	machine.ServiceStateEvent_STOPPING: "Stopping", machine.ServiceStateEvent_FINISHED: "Finished",
	machine.ServiceStateEvent_FAILED: "Failed",
}

// serviceIs notes what a service does now, in its history, its log and the node's events.
func (b *boot) serviceIs(id string, action machine.ServiceStateEvent_Action, message string) {
	b.history.mu.Lock()
	if b.history.entries == nil {
		b.history.entries = map[string][]*machine.ServiceEvent{}
	}
	b.history.entries[id] = append(b.history.entries[id], &machine.ServiceEvent{
		Msg: message, State: serviceStates[action], Ts: timestamppb.Now(),
	})
	b.history.mu.Unlock()
	b.events.add("", &machine.ServiceStateEvent{
		Service: id, Action: action, Message: message, Health: &machine.ServiceHealth{Unknown: action != machine.ServiceStateEvent_RUNNING},
	})
}

// restarted notes that a service stopped and runs again.
func (b *boot) restarted(id string) {
	for _, step := range []struct {
		action  machine.ServiceStateEvent_Action
		message string
	}{
		{machine.ServiceStateEvent_STOPPING, "Sending SIGTERM to the service"},
		{machine.ServiceStateEvent_FINISHED, "Service finished successfully"},
		{machine.ServiceStateEvent_STARTING, "Starting service"},
		{machine.ServiceStateEvent_RUNNING, "Started service"},
	} {
		b.serviceIs(id, step.action, step.message)
	}
}

func (s *machineService) ServiceList(context.Context, *emptypb.Empty) (*machine.ServiceListResponse, error) {
	list := &machine.ServiceList{}
	b := s.boot
	for _, service := range b.services() {
		b.history.mu.Lock()
		events := slices.Clone(b.history.entries[service.id])
		b.history.mu.Unlock()
		list.Services = append(list.Services, &machine.ServiceInfo{
			Id: service.id, State: service.state, Events: &machine.ServiceEvents{Events: events},
			Health: &machine.ServiceHealth{Unknown: !service.running, Healthy: service.healthy, LastChange: timestamppb.New(b.begun)},
		})
	}
	return &machine.ServiceListResponse{Messages: []*machine.ServiceList{list}}, nil
}

// controllable says which services a caller may start, stop and restart: the kubelet and those of extensions. Source:
// Talos, internal/app/machined/pkg/system, APIStart and its like; services/kubelet.go, services/extension.go.
func (b *boot) controllable(id, operation string) error {
	if !slices.ContainsFunc(b.services(), func(s service) bool { return s.id == id }) {
		return status.Errorf(codes.Unknown, "service %q not defined", id)
	}
	if id != "kubelet" && !strings.HasPrefix(id, "ext-") {
		return status.Errorf(codes.Unknown, "service %q doesn't support %s operation via API", id, operation)
	}
	return nil
}

func (b *boot) setStopped(id string, stopped bool) {
	b.history.mu.Lock()
	if b.history.stopped == nil {
		b.history.stopped = map[string]bool{}
	}
	b.history.stopped[id] = stopped
	b.history.mu.Unlock()
	b.publish()
	b.kubeletChanged.send()
}

func (s *machineService) ServiceStart(_ context.Context, request *machine.ServiceStartRequest) (*machine.ServiceStartResponse, error) {
	if err := s.boot.controllable(request.GetId(), "start"); err != nil {
		return nil, err
	}
	s.boot.serviceIs(request.GetId(), machine.ServiceStateEvent_RUNNING, "Started service")
	s.boot.setStopped(request.GetId(), false)
	return &machine.ServiceStartResponse{Messages: []*machine.ServiceStart{{Resp: fmt.Sprintf("Service %q started", request.GetId())}}}, nil
}

func (s *machineService) ServiceStop(_ context.Context, request *machine.ServiceStopRequest) (*machine.ServiceStopResponse, error) {
	if err := s.boot.controllable(request.GetId(), "stop"); err != nil {
		return nil, err
	}
	s.boot.serviceIs(request.GetId(), machine.ServiceStateEvent_FINISHED, "Service finished successfully")
	s.boot.setStopped(request.GetId(), true)
	return &machine.ServiceStopResponse{Messages: []*machine.ServiceStop{{Resp: fmt.Sprintf("Service %q stopped", request.GetId())}}}, nil
}

func (s *machineService) ServiceRestart(_ context.Context, request *machine.ServiceRestartRequest) (*machine.ServiceRestartResponse, error) {
	if err := s.boot.controllable(request.GetId(), "restart"); err != nil {
		return nil, err
	}
	s.boot.restarted(request.GetId())
	s.boot.setStopped(request.GetId(), false)
	return &machine.ServiceRestartResponse{Messages: []*machine.ServiceRestart{{Resp: fmt.Sprintf("Service %q restarted", request.GetId())}}}, nil
}

// Logs are what the service's history says, a line for each entry. Containers have none here: the logs of real components
// are in the world's directory.
func (s *machineService) Logs(request *machine.LogsRequest, stream machine.MachineService_LogsServer) error {
	b := s.boot
	if !slices.ContainsFunc(b.services(), func(service service) bool { return service.id == request.GetId() }) {
		return status.Errorf(codes.Unknown, "log %q was not registered", request.GetId())
	}
	return b.follow(stream, func() []string {
		b.history.mu.Lock()
		defer b.history.mu.Unlock()
		var lines []string
		for _, entry := range b.history.entries[request.GetId()] {
			lines = append(lines, request.GetId()+": "+entry.GetMsg())
		}
		return lines
	}, request.GetFollow(), int(request.GetTailLines()))
}

// Dmesg is the kernel's log, in which machined writes too.
func (s *machineService) Dmesg(request *machine.DmesgRequest, stream machine.MachineService_DmesgServer) error {
	b := s.boot
	tail := -1
	if request.GetTail() {
		tail = 0
	}
	return b.follow(stream, func() []string {
		return []string{
			"kern: notice: Linux version 6.18.0-talos",
			"user: warning: [talos] booting Talos " + b.image.version.String(),
		}
	}, request.GetFollow(), tail)
}

// dataStream is one that sends bytes.
type dataStream interface {
	Send(data *common.Data) error
	Context() context.Context
}

// follow sends lines, only the last of them if tail is not negative, and, if asked to, those that come.
func (b *boot) follow(stream dataStream, lines func() []string, onwards bool, tail int) error {
	sent := 0
	if tail >= 0 {
		sent = max(0, len(lines())-tail)
	}
	for {
		_, changed := b.events.after(0)
		for _, line := range lines()[sent:] {
			if err := stream.Send(&common.Data{Bytes: []byte(line + "\n")}); err != nil {
				return err
			}
			sent++
		}
		if !onwards {
			return nil
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return nil
		case <-b.ctx.Done():
			return errGoingDown
		}
	}
}

func (s *machineService) LogsContainers(context.Context, *emptypb.Empty) (*machine.LogsContainersResponse, error) {
	list := &machine.LogsContainer{}
	for _, service := range s.boot.services() {
		list.Ids = append(list.Ids, service.id)
	}
	return &machine.LogsContainersResponse{Messages: []*machine.LogsContainer{list}}, nil
}

// Containers are the static pods' in the namespace of Kubernetes, and the services' in Talos' own.
func (s *machineService) Containers(_ context.Context, request *machine.ContainersRequest) (*machine.ContainersResponse, error) {
	list := &machine.Container{}
	if request.GetNamespace() == "k8s.io" {
		pods := s.boot.runningPods()
		for _, id := range slices.Sorted(maps.Keys(pods)) {
			name := systemNamespace + "/" + id + "-" + s.boot.config().nodename(s.boot.node)
			list.Containers = append(list.Containers, &machine.ContainerInfo{
				Namespace: request.GetNamespace(), Id: name + ":" + id, PodId: name, Name: id, Image: pods[id].image, Status: "CONTAINER_RUNNING",
			})
		}
	} else {
		for _, service := range s.boot.services() {
			if service.running {
				list.Containers = append(list.Containers, &machine.ContainerInfo{
					Namespace: request.GetNamespace(), Id: service.id, PodId: service.id, Name: service.id, Status: "RUNNING",
				})
			}
		}
	}
	return &machine.ContainersResponse{Messages: []*machine.Container{list}}, nil
}

// signal wakes one who waits, and is not lost if he does not wait yet.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

func (s signal) send() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// The figures of a machine that does nothing.
const (
	memoryKiB = 8 << 20
	freeKiB   = 6 << 20
)

func (s *machineService) Memory(context.Context, *emptypb.Empty) (*machine.MemoryResponse, error) {
	return &machine.MemoryResponse{Messages: []*machine.Memory{{
		Meminfo: &machine.MemInfo{Memtotal: memoryKiB, Memfree: freeKiB, Memavailable: freeKiB},
	}}}, nil
}

func (s *machineService) LoadAvg(context.Context, *emptypb.Empty) (*machine.LoadAvgResponse, error) {
	return &machine.LoadAvgResponse{Messages: []*machine.LoadAvg{{Load1: 0.1, Load5: 0.1, Load15: 0.1}}}, nil
}

func (s *machineService) SystemStat(context.Context, *emptypb.Empty) (*machine.SystemStatResponse, error) {
	return &machine.SystemStatResponse{Messages: []*machine.SystemStat{{
		BootTime: uint64(s.boot.begun.Unix()), CpuTotal: &machine.CPUStat{Idle: time.Since(s.boot.begun).Seconds()},
		ProcessRunning: 1,
	}}}, nil
}

func (s *machineService) CPUInfo(context.Context, *emptypb.Empty) (*machine.CPUInfoResponse, error) {
	info := &machine.CPUsInfo{}
	for i := range uint32(4) {
		info.CpuInfo = append(info.CpuInfo, &machine.CPUInfo{Processor: i, VendorId: "simulated", ModelName: "simulated", CpuMhz: 1000})
	}
	return &machine.CPUInfoResponse{Messages: []*machine.CPUsInfo{info}}, nil
}

func (s *machineService) Mounts(context.Context, *emptypb.Empty) (*machine.MountsResponse, error) {
	mounts := &machine.Mounts{}
	if c := s.boot.config(); c != nil {
		for _, v := range s.boot.node.provision(c) {
			if v.target != "" && v.on != nil {
				mounts.Stats = append(mounts.Stats, &machine.MountStat{Filesystem: v.on.mountDevice(), Size: v.on.size, Available: v.on.size, MountedOn: v.target})
			}
		}
	}
	return &machine.MountsResponse{Messages: []*machine.Mounts{mounts}}, nil
}
