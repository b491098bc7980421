// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	runtimeres "github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// leave ends the boot after the call is answered, by a sequence that an actor asked for. What fails before the services
// are stopped ends the sequence, and the boot goes on. Nothing comes of it while another sequence runs that this one may not take over:
// the caller is answered all the same, and only the events tell. Source: Talos, v1alpha1 controller, Run, and its priority lock.
func (b *boot) leave(s sequence, stage runtimeres.MachineStage, first, next func(context.Context) error) (actor string) {
	actor = newActor()
	ctx, free := b.takeOver(s)
	if !free {
		b.events.add(actor, &machine.SequenceEvent{
			Sequence: s.name, Action: machine.SequenceEvent_NOOP, Error: &common.Error{Code: common.Code_LOCKED, Message: "sequence not started: locked"},
		})
		return actor
	}
	b.node.leaveFor(b, func(b *boot) error {
		b.begin(actor, s)
		before := b.setStage(stage)
		if first != nil {
			err := first(ctx)
			if ctx.Err() != nil {
				return ctx.Err() // another goes on with the node, or its power went
			}
			if err != nil {
				b.end(actor, s, err)
				b.release()
				b.setStage(before)
				return err
			}
		}
		for _, name := range s.phases {
			b.phase(actor, name)
		}
		if s.name != shutdownSequence.name {
			b.events.add(actor, &machine.RestartEvent{})
		}
		return nil
	}, next)
	return actor
}

// takeOver makes a sequence the one that runs, in place of one that it may end; it says whether it may. The context ends with the boot, or when
// another takes over.
func (b *boot) takeOver(s sequence) (ctx context.Context, free bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.leaving != nil && !s.takesOver && !slices.Contains(takenOver[s.name], b.leaving.name) {
		return nil, false
	}
	if b.leaving != nil {
		b.leaving.end()
	}
	ctx, end := context.WithCancel(b.ctx)
	b.leaving = &leaving{name: s.name, end: end}
	return ctx, true
}

// release says that no sequence runs any more.
func (b *boot) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leaving.end()
	b.leaving = nil
}

// leaving is the sequence by which a boot ends.
type leaving struct {
	name string
	end  context.CancelFunc
}

// takenOver are by a sequence those that it may end. Source: Talos, internal/app/machined/pkg/runtime, CanTakeOver.
var takenOver = map[string][]string{rebootSequence.name: {rebootSequence.name, resetSequence.name}}

// drained is the first thing of a sequence that drains the Node. How that goes stops nothing.
func (b *boot) drained(ctx context.Context) error {
	b.cordonAndDrain(ctx)
	return nil
}

func (s *machineService) Reboot(ctx context.Context, request *machine.RebootRequest) (*machine.RebootResponse, error) {
	remark(ctx).say("mode=%s", request.GetMode())
	actor := s.boot.leave(rebootSequence, runtimeres.MachineStageRebooting, nil, s.boot.node.start)
	return &machine.RebootResponse{Messages: []*machine.Reboot{{ActorId: actor}}}, nil
}

func (s *machineService) Shutdown(_ context.Context, request *machine.ShutdownRequest) (*machine.ShutdownResponse, error) {
	first := s.boot.drained
	if request.GetForce() {
		first = nil
	}
	actor := s.boot.leave(shutdownSequence, runtimeres.MachineStageShuttingDown, first, s.boot.node.turnOff)
	return &machine.ShutdownResponse{Messages: []*machine.Shutdown{{ActorId: actor}}}, nil
}

// turnOff is the end of a shutdown.
func (n *Node) turnOff(context.Context) error {
	n.mu.Lock()
	n.on = false
	n.mu.Unlock()
	n.note("is off")
	n.writeDown()
	return nil
}

func (s *machineService) Rollback(context.Context, *machine.RollbackRequest) (*machine.RollbackResponse, error) {
	n := s.boot.node
	if err := s.boot.mustBeConfigured("rollback"); err != nil {
		return nil, err
	}
	n.mu.Lock()
	err := n.disk.revert()
	n.mu.Unlock()
	if err != nil {
		return nil, status.Error(codes.Unknown, err.Error())
	}
	back := rebootSequence
	back.takesOver = true
	s.boot.leave(back, runtimeres.MachineStageRebooting, nil, n.start)
	return &machine.RollbackResponse{Messages: []*machine.Rollback{{}}}, nil
}

// MetaWrite sets a key of the META partition. What an installer has written there since the boot, the way back from a
// system that does not boot, is lost by it: machined writes what it read when it booted.
func (s *machineService) MetaWrite(_ context.Context, request *machine.MetaWriteRequest) (*machine.MetaWriteResponse, error) {
	return &machine.MetaWriteResponse{Messages: []*machine.MetaWrite{{}}}, s.boot.setMeta(request.GetKey(), request.GetValue())
}

// MetaDelete removes a key of the META partition; the same care as for MetaWrite.
func (s *machineService) MetaDelete(_ context.Context, request *machine.MetaDeleteRequest) (*machine.MetaDeleteResponse, error) {
	n := s.boot.node
	n.mu.Lock()
	_, found := n.disk.meta[request.GetKey()]
	n.mu.Unlock()
	if !found {
		return nil, status.Error(codes.NotFound, "key not found")
	}
	return &machine.MetaDeleteResponse{Messages: []*machine.MetaDelete{{}}}, s.boot.setMeta(request.GetKey(), nil)
}

func (b *boot) setMeta(key uint32, value []byte) error {
	if key > 255 {
		return status.Errorf(codes.InvalidArgument, "key must be a uint8, not %d", key)
	}
	n := b.node
	n.mu.Lock()
	if value == nil {
		delete(n.disk.meta, key)
	} else {
		n.disk.meta[key] = value
	}
	n.disk.fallback = -1
	n.mu.Unlock()
	b.publish()
	return nil
}
