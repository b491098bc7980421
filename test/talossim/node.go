// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
)

// DefaultImage is what a node boots when its options name no image.
const DefaultImage = "ghcr.io/siderolabs/installer:v1.14.1"

// NodeOptions describe a machine.
type NodeOptions struct {
	// Name is the hostname that the platform gives the machine. The configuration may say another.
	Name string

	// Image is the Talos that the machine starts with, as an installer image: its tag is the version (1.12 to 1.14), and
	// a schematic's ID in it gives the system extensions. Default: DefaultImage.
	Image string

	// Blank is a machine with an empty disk that is booted from a medium. A configuration makes it install what the
	// configuration names, and reboot. Without it, the machine runs a disk image.
	Blank bool

	// Metal is a machine whose configuration must have install instructions. Without it, it is a cloud's.
	Metal bool

	// ProviderID is the ID by which the machine's platform knows it. The platform's cloud controller manager, which stands
	// in the world of full fidelity, writes it into the Node if the kubelet has registered it without one. Empty: there is
	// no such manager.
	ProviderID string

	// Disks are the machine's, the system's first. Default: one of 20 GiB.
	Disks []Disk
}

// Node is a simulated machine and the Talos node on it. Its methods may be called from several goroutines.
type Node struct {
	world   *World
	options NodeOptions
	address string
	gate    *gate
	uuid    string

	// keeping is held while the machine is written down, keptLast is what was.
	keeping  sync.Mutex
	keptLast []byte

	// power is held while the machine boots or stops.
	power sync.Mutex
	// background are what runs beside calls and ends with the machine.
	background sync.WaitGroup

	mu       sync.Mutex
	disk     disk
	userData []byte
	boot     *boot // nil when off
	boots    int
	on       bool
	gone     bool
	etcd     etcdMember
	etcdKey  string
	faults   Faults
	traps    []trap
	calls    []Call
	lookers  []func(ctx context.Context, method string, request any)
	pulled   map[string]bool
	// labelError is why the API server refused labels.
	labelError error
	failure    error
	bootError  error
}

func newNode(w *World, address string, options NodeOptions) (*Node, error) {
	if options.Name == "" {
		return nil, errors.New("has no name")
	}
	if options.Image == "" {
		options.Image = DefaultImage
	}
	image, err := parseImage(options.Image)
	if err != nil {
		return nil, err
	}
	return &Node{
		world: w, options: options, address: address, uuid: uuid.NewString(), pulled: map[string]bool{},
		gate: newGate(net.JoinHostPort(address, strconv.Itoa(constants.ApidPort))),
		disk: disk{slots: [2]osImage{image}, fallback: -1, installed: !options.Blank, meta: map[uint32][]byte{}},
	}, nil
}

// Name is the machine's.
func (n *Node) Name() string { return n.options.Name }

// Address is the machine's only address; its API listens on port 50000 of it.
func (n *Node) Address() string { return n.address }

// SetUserData sets what the platform hands to a machine that has no configuration on its disk.
func (n *Node) SetUserData(config []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.userData = bytes.Clone(config)
}

// PowerOn boots the machine and returns when the node has booted: its API listens, in maintenance mode if it has no
// configuration that it accepts, or it is a worker that waits for a control-plane node to sign its certificate. A
// machine that is on is left alone.
func (n *Node) PowerOn(ctx context.Context) error {
	n.power.Lock()
	defer n.power.Unlock()
	n.mu.Lock()
	already, gone := n.on, n.gone
	n.on = !gone
	n.mu.Unlock()
	switch {
	case gone:
		return fmt.Errorf("node %s: was destroyed", n.Name())
	case already:
		return nil
	}
	n.note("power on")
	n.writeDown()
	return n.start(ctx)
}

// Destroy takes the machine away for good, with its disk and its address. What its cluster knows of it stays there: an etcd
// member that was not removed before is one that never answers again.
func (n *Node) Destroy() error {
	n.mu.Lock()
	n.gone = true
	n.mu.Unlock()
	n.note("is destroyed")
	n.PowerOff()
	w := n.world
	w.mu.Lock()
	w.nodes = slices.DeleteFunc(w.nodes, func(other *Node) bool { return other == n })
	err := w.addresses.Free(n.address)
	w.mu.Unlock()
	w.wake()
	if w.options.Full || w.options.Keep {
		err = errors.Join(err, os.RemoveAll(n.dir()))
	}
	return err
}

// dir holds what the components of full fidelity write.
func (n *Node) dir() string { return filepath.Join(n.world.options.Dir, n.options.Name) }

// PowerOff cuts the machine's power: connections die, nothing is told to anyone.
func (n *Node) PowerOff() {
	n.mu.Lock()
	was := n.on
	n.on = false
	n.mu.Unlock()
	if was {
		n.note("power off")
		n.writeDown()
	}
	n.power.Lock()
	n.halt()
	n.power.Unlock()
	n.background.Wait()
}

// Crash cuts the power and boots again.
func (n *Node) Crash(ctx context.Context) error {
	n.PowerOff()
	return n.PowerOn(ctx)
}

// halt ends the current boot at once. The caller holds power.
func (n *Node) halt() {
	b := n.current()
	if b == nil {
		return
	}
	n.gate.stop()
	b.cancel()
	b.peers.close()
	b.server.Stop()
	n.mu.Lock()
	etcd := n.etcd
	n.boot = nil
	n.mu.Unlock()
	if etcd != nil {
		etcd.stop()
	}
	b.tasks.Wait()
	if b.control != nil {
		b.control.stop()
		n.world.releaseManager(b)
	}
	if etcd != nil {
		// What was being started when the power went.
		etcd.stop()
	}
}

// current is the boot that runs, or nil.
func (n *Node) current() *boot {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.boot
}

const (
	// lastWords is how long a node that goes down tells those who watch it what it does.
	lastWords = 250 * time.Millisecond
	// drainBound is how long it lets calls end after that.
	drainBound = time.Second
)

// leaveFor ends this boot in an orderly way after the call that asks for it was answered, and then does what is next. If the
// way there fails, the boot goes on.
func (n *Node) leaveFor(b *boot, stage func(*boot) error, next func(context.Context) error) {
	n.background.Go(func() {
		if stage(b) != nil {
			return // it is in the node's events
		}
		stopped := make(chan struct{})
		go func() {
			b.server.GracefulStop()
			close(stopped)
		}()
		for _, bound := range []time.Duration{lastWords, drainBound} {
			timer := time.NewTimer(bound)
			select {
			case <-stopped:
			case <-timer.C:
			}
			timer.Stop()
			b.endStreams()
		}
		n.power.Lock()
		defer n.power.Unlock()
		if n.current() != b {
			return // the power went meanwhile
		}
		n.halt()
		n.mu.Lock()
		on := n.on
		n.mu.Unlock()
		if on {
			// A boot that fails is seen in BootError.
			_ = next(context.Background())
		}
	})
}

// crash is what a trap does: the power goes and comes back.
func (n *Node) crash(b *boot) {
	n.gate.stop()
	n.background.Go(func() {
		n.power.Lock()
		defer n.power.Unlock()
		if n.current() != b {
			return
		}
		n.halt()
		n.mu.Lock()
		on := n.on
		n.mu.Unlock()
		if on {
			_ = n.start(context.Background())
		}
	})
}

// refresh shows what changed beside the node in its own state.
func (n *Node) refresh() {
	if b := n.current(); b != nil {
		b.publish()
		b.kubeletChanged.send()
	}
}

// On tells whether the machine is on. It is so while it boots, also in vain.
func (n *Node) On() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.on
}

// BootError is why the last boot failed, or nil.
func (n *Node) BootError() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.bootError
}

// BootID is the ID of the boot that runs, or empty.
func (n *Node) BootID() string {
	if b := n.current(); b != nil {
		return b.id
	}
	return ""
}

// Boots counts the machine's boots, failed ones included.
func (n *Node) Boots() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.boots
}

// Version is the Talos version that runs, such as v1.14.1, or empty.
func (n *Node) Version() string {
	if b := n.current(); b != nil {
		return b.image.version.String()
	}
	return ""
}

// Config is the machine configuration that the disk holds.
func (n *Node) Config() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	return bytes.Clone(n.disk.config)
}

// Maintenance tells whether the node runs in maintenance mode, and why if it was given a configuration that it refused.
func (n *Node) Maintenance() (bool, error) {
	b := n.current()
	if b == nil {
		return false, nil
	}
	return b.config() == nil, b.refused
}

// EtcdMemberID is the ID of the node's etcd member, or zero.
func (n *Node) EtcdMemberID() uint64 {
	if etcd := n.member(); etcd != nil {
		return etcd.id()
	}
	return 0
}

func (n *Node) member() etcdMember {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.etcd
}

// etcdAuthority is what the members of the node's etcd cluster have in common.
func (n *Node) etcdAuthority() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.etcdKey
}

// fail remembers that a component of full fidelity did not start. One that the end of the boot stopped is no failure.
func (n *Node) fail(err error) {
	if b := n.current(); b == nil || b.ctx.Err() != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failure = err
}

// Failure is why the Talos API does not listen, or a component of full fidelity did not start, or nil.
func (n *Node) Failure() error {
	if err := n.gate.failure(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.failure
}

// LabelError is why the API server did not take the node's labels, as it refuses a worker's node-role labels; nil if it did.
func (n *Node) LabelError() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.labelError
}

// RaiseEtcdAlarm sets an alarm on the node's etcd member, which runs in the model.
func (n *Node) RaiseEtcdAlarm(alarm machine.EtcdMemberAlarm_AlarmType) error {
	model, ok := n.member().(*modelEtcd)
	if !ok {
		return fmt.Errorf("node %s: has no etcd member of the model", n.Name())
	}
	return model.raise(alarm)
}

// imageMatches tells whether a fault that names an image is about this one.
func imageMatches(image osImage, suffix string) bool {
	return suffix != "" && len(image.ref) >= len(suffix) && image.ref[len(image.ref)-len(suffix):] == suffix
}

// hasImage tells whether the image can be pulled.
func (w *World) hasImage(ref string) bool {
	return !slices.Contains(w.options.MissingImages, ref)
}
