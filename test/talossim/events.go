// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	runtimeres "github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// eventsKept is how many events a node remembers. Source: Talos, internal/app/machined/pkg/runtime/v1alpha1, events.
const eventsKept = 1000

// event is something that happened on a node.
type event struct {
	id      int
	actor   string
	at      time.Time
	payload proto.Message
}

// eventLog has what happened since the boot. Its zero value is empty.
type eventLog struct {
	mu     sync.Mutex
	events []event
	last   int
	// changed is closed and replaced when there is a new one.
	changed chan struct{}
}

func (l *eventLog) add(actor string, payload proto.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	l.events = append(l.events, event{id: l.last, actor: actor, at: time.Now(), payload: payload})
	if extra := len(l.events) - eventsKept; extra > 0 {
		l.events = slices.Clone(l.events[extra:])
	}
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// after returns the events behind one, and what is closed at the next.
func (l *eventLog) after(id int) ([]event, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	i := slices.IndexFunc(l.events, func(e event) bool { return e.id > id })
	if i < 0 {
		return nil, l.changed
	}
	return slices.Clone(l.events[i:]), l.changed
}

// start returns the ID behind which a caller wants to hear.
func (l *eventLog) start(request *machine.EventsRequest) int {
	all, _ := l.after(0)
	switch {
	case request.GetTailEvents() < 0:
		return 0
	case request.GetTailEvents() > 0:
		if keep := int(request.GetTailEvents()); len(all) > keep {
			return all[len(all)-keep].id - 1
		}
		return 0
	case request.GetTailId() != "":
		var id int
		if _, err := fmt.Sscanf(request.GetTailId(), eventID, &id); err == nil {
			return id
		}
	case request.GetTailSeconds() > 0:
		since := time.Now().Add(-time.Duration(request.GetTailSeconds()) * time.Second)
		if i := slices.IndexFunc(all, func(e event) bool { return !e.at.Before(since) }); i >= 0 {
			return all[i].id - 1
		}
	}
	if len(all) == 0 {
		return 0
	}
	return all[len(all)-1].id
}

// eventID is the form of an event's ID: IDs sort by time.
const eventID = "event%012d"

// Events tells what happened, as much of it as is asked for, and then what happens. The first message is empty: it says
// that nothing will be missed from then on.
func (s *machineService) Events(request *machine.EventsRequest, stream machine.MachineService_EventsServer) error {
	log := &s.boot.events
	last := log.start(request)
	if err := stream.Send(&machine.Event{}); err != nil {
		return err
	}
	for {
		news, changed := log.after(last)
		for _, e := range news {
			last = e.id
			if request.GetWithActorId() != "" && request.GetWithActorId() != e.actor {
				continue
			}
			value, err := proto.Marshal(e.payload)
			if err != nil {
				return err
			}
			if err := stream.Send(&machine.Event{
				Id: fmt.Sprintf(eventID, e.id), ActorId: e.actor,
				Data: &anypb.Any{TypeUrl: "talos/runtime/" + string(e.payload.ProtoReflect().Descriptor().FullName()), Value: value},
			}); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return nil
		case <-s.boot.ctx.Done():
			return errGoingDown
		}
	}
}

// newActor names who is behind what happens next: the call that asked for it.
func newActor() string { return uuid.NewString() }

// sequence is something that a node does in phases. Source of the names: Talos,
// internal/app/machined/pkg/runtime/v1alpha1, Sequencer.
type sequence struct {
	name   string
	phases []string
	// takesOver ends any other sequence that runs.
	takesOver bool
}

var (
	bootSequence     = sequence{name: "boot", phases: []string{"validateConfig", "env", "dbus", "startEverything", "uncordon", "bootloader"}}
	rebootSequence   = sequence{name: "reboot", phases: []string{"cleanup", "dbus", "stopEverything", "umount", "kexec", "reboot"}}
	shutdownSequence = sequence{name: "shutdown", phases: []string{"storeShutdown", "drain", "cleanup", "dbus", "stopEverything", "shutdown"}, takesOver: true}
	upgradeSequence  = sequence{name: "upgrade", phases: []string{"drain", "cleanup", "dbus", "leave", "stopServices", "unmountUser", "verifyDisk", "upgrade", "kexec", "reboot"}}
	stageSequence    = sequence{name: "stageUpgrade", phases: []string{"cleanup", "dbus", "leave", "stopEverything", "kexec", "reboot"}}
	resetSequence    = sequence{name: "reset", phases: []string{"drain", "cleanup", "dbus", "leave", "preReset", "stopEverything", "reset", "reboot"}}
	installSequence  = sequence{name: "install", phases: []string{"env", "install", "saveConfig", "stopEverything", "reboot"}}
)

// begin says that a sequence starts.
func (b *boot) begin(actor string, s sequence) {
	b.events.add(actor, &machine.SequenceEvent{Sequence: s.name, Action: machine.SequenceEvent_START})
}

// phase says that a phase of a sequence was gone through. Each has one task of the same name here.
func (b *boot) phase(actor, name string) {
	b.events.add(actor, &machine.PhaseEvent{Phase: name, Action: machine.PhaseEvent_START})
	b.events.add(actor, &machine.TaskEvent{Task: name, Action: machine.TaskEvent_START})
	b.events.add(actor, &machine.TaskEvent{Task: name, Action: machine.TaskEvent_STOP})
	b.events.add(actor, &machine.PhaseEvent{Phase: name, Action: machine.PhaseEvent_STOP})
}

// end says how a sequence ended. One that ends the boot has nobody who would hear.
func (b *boot) end(actor string, s sequence, err error) {
	e := &machine.SequenceEvent{Sequence: s.name, Action: machine.SequenceEvent_STOP}
	if err != nil {
		e.Error = &common.Error{Code: common.Code_FATAL, Message: err.Error()}
	}
	b.events.add(actor, e)
}

var stageEvents = map[runtimeres.MachineStage]machine.MachineStatusEvent_MachineStage{
	runtimeres.MachineStageBooting:      machine.MachineStatusEvent_BOOTING,
	runtimeres.MachineStageInstalling:   machine.MachineStatusEvent_INSTALLING,
	runtimeres.MachineStageMaintenance:  machine.MachineStatusEvent_MAINTENANCE,
	runtimeres.MachineStageRunning:      machine.MachineStatusEvent_RUNNING,
	runtimeres.MachineStageRebooting:    machine.MachineStatusEvent_REBOOTING,
	runtimeres.MachineStageShuttingDown: machine.MachineStatusEvent_SHUTTING_DOWN,
	runtimeres.MachineStageResetting:    machine.MachineStatusEvent_RESETTING,
	runtimeres.MachineStageUpgrading:    machine.MachineStatusEvent_UPGRADING,
}

// reportStatus says what the node is doing, if that is news.
func (b *boot) reportStatus(stage runtimeres.MachineStage, unmet []runtimeres.UnmetCondition) {
	e := &machine.MachineStatusEvent{
		Stage: stageEvents[stage], Status: &machine.MachineStatusEvent_MachineStatus{Ready: len(unmet) == 0},
	}
	for _, condition := range unmet {
		e.Status.UnmetConditions = append(e.Status.UnmetConditions, &machine.MachineStatusEvent_MachineStatus_UnmetCondition{
			Name: condition.Name, Reason: condition.Reason,
		})
	}
	b.mu.Lock()
	same := b.reported != nil && proto.Equal(b.reported, e)
	b.reported = e
	b.mu.Unlock()
	if !same {
		b.events.add("", e)
	}
}
