// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/uuid"
	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	runtimeres "github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/grpc"
)

// boot is one run of the operating system, from power-on to power-off.
type boot struct {
	node  *Node
	id    string
	image osImage
	// refused is why the configuration was not accepted.
	refused error

	ctx    context.Context //nolint:containedctx // It is the life of the machine, not of a call.
	cancel context.CancelFunc
	// streams is done when those who watch the node have to go, by endStreams.
	streams    context.Context //nolint:containedctx // as above
	endStreams context.CancelFunc
	server     *grpc.Server
	state      state.State
	begun      time.Time
	// actor is the call or the power-on that led to this boot.
	actor   string
	events  eventLog
	history serviceHistory
	// peers are the nodes to which this one passes calls on.
	peers connections
	// tasks are what the node does by itself.
	tasks sync.WaitGroup
	// bootstrapping is closed when what Bootstrap has begun is done; nil if there is nothing.
	bootstrapping chan struct{}
	// changing is held by the one call that changes the configuration, installing by the one that installs.
	changing, installing sync.Mutex

	// shown is set when the state was asked for, under showing.
	showing sync.Mutex
	shown   atomic.Bool
	// published is what the state holds, under publishing.
	publishing sync.Mutex
	published  map[string]resource.Resource
	// confirmed is set when the node was ready for the first time: only then does a system that was upgraded stay. What an
	// installer writes later is about the next boot.
	confirmed bool

	certificate atomic.Pointer[tls.Certificate]

	mu     sync.Mutex
	stage  runtimeres.MachineStage
	active *nodeConfig // nil in maintenance mode
	// left is set when the etcd member left the cluster: the service stays down until the next boot.
	left bool
	// leaving is the sequence by which the boot ends; nil before.
	leaving *leaving
	// try is closed when a configuration that was applied to try is confirmed or replaced.
	try chan struct{}
	// registered is set when the kubelet's stand-in has registered the Node.
	registered bool

	// pods are the static pods that run, by component.
	pods map[string]pod
	// seen is the Node as the kubelet's stand-in saw it last.
	seen *k8s.NodeStatusSpec
	// started is true when the boot has nothing left to do but to wait for the services.
	started bool
	// reported is the machine's status as the events told it last.
	reported *machine.MachineStatusEvent

	// control is the node's Kubernetes, which its task owns until the boot ends; nil without.
	control *controlPlane
	// kubeletChanged tells the kubelet's stand-in that its configuration changed.
	kubeletChanged signal
}

// bootFailures bounds a machine that fails for ever: a real one tries on, but nobody learns more from it.
const bootFailures = 3

// errBootFails is what PowerOn says of a machine that never comes up.
var errBootFails = errors.New("does not boot")

// start boots what the boot loader takes, and notes whether it could. The caller holds power.
func (n *Node) start(ctx context.Context) error {
	err := n.tryBoots(ctx)
	n.mu.Lock()
	n.bootError = err
	n.mu.Unlock()
	n.writeDown()
	return err
}

// tryBoots boots until an image comes up, or it is sure that none does.
func (n *Node) tryBoots(ctx context.Context) error {
	for range bootFailures {
		n.mu.Lock()
		n.boots++
		if staged := n.disk.staged; staged != nil {
			// This boot does nothing but install, and boot again.
			n.disk.staged = nil
			n.mu.Unlock()
			_, _ = n.installUpgrade(*staged, nil) // One that fails leaves what was there, and is noted.
			n.mu.Lock()
			n.boots++
		}
		image, faults := n.disk.slots[n.disk.next], n.faults
		if !imageMatches(image, faults.BootFails) {
			n.mu.Unlock()
			return n.run(ctx, image, uuid.NewString())
		}
		// Machined fails during its boot sequence: it goes back to the entry before the upgrade, and reboots.
		back := n.disk.fallback >= 0
		if back {
			n.disk.next, n.disk.fallback = n.disk.fallback, -1
		}
		n.mu.Unlock()
		n.note("does not boot %s", image.version)
		if back {
			n.note("goes back to the system before")
		}
	}
	return fmt.Errorf("node %s: image %s: %w", n.Name(), n.options.Image, errBootFails)
}

// run boots one image, or goes on with a boot that waited for a configuration.
func (n *Node) run(ctx context.Context, image osImage, id string) error {
	b := &boot{
		node: n, id: id, image: image, stage: runtimeres.MachineStageBooting,
		published: map[string]resource.Resource{}, kubeletChanged: newSignal(), begun: time.Now(), actor: newActor(),
	}
	b.ctx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
	b.streams, b.endStreams = context.WithCancel(b.ctx)

	n.mu.Lock()
	config := n.disk.config
	if config == nil {
		config = n.userData
	}
	installed := n.disk.installed
	n.mu.Unlock()

	if config != nil {
		loaded, _, err := n.world.load(ctx, image, n.options.Metal, config)
		switch {
		case err != nil:
			b.refused = err
		case !installed:
			if err := n.installFrom(loaded); err != nil {
				b.refused = err
				break
			}
			b.cancel()
			n.keep(config)
			return n.start(ctx)
		default:
			b.active = loaded
			n.keep(config)
		}
	}
	return b.up()
}

// installFrom writes the image that a configuration names to the disk; the image that runs if it names none.
func (n *Node) installFrom(config *nodeConfig) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	image := n.disk.slots[n.disk.next]
	if ref := config.installImage(); ref != "" {
		var err error
		if image, err = parseImage(ref); err != nil {
			return fmt.Errorf("install: %w", err)
		}
		if !n.world.hasImage(ref) {
			return fmt.Errorf("install: image %s: not found", ref)
		}
	}
	n.disk.slots, n.disk.next, n.disk.fallback, n.disk.installed = [2]osImage{image}, 0, -1, true
	n.note("installs %s on its disk", image.version)
	return nil
}

// keep stores a configuration for the next boot.
func (n *Node) keep(config []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.disk.config = config
}

// up starts everything of a boot.
func (b *boot) up() error {
	n := b.node
	b.prepareState()
	b.server = b.newServer()
	if config := b.active; config != nil {
		if err := n.prepareEtcd(config); err != nil {
			b.cancel()
			return fmt.Errorf("node %s: %w", n.Name(), err)
		}
		if n.world.kubernetes() && config.controlPlane() {
			b.control = newControlPlane(b)
		}
	}
	n.mu.Lock()
	n.boot = b
	n.mu.Unlock()
	switch {
	case b.refused != nil:
		n.note("boots %s into maintenance mode: its configuration is refused", b.image.version)
	case b.active == nil:
		n.note("boots %s into maintenance mode", b.image.version)
	default:
		n.note("boots %s", b.image.version)
	}
	b.begin(b.actor, bootSequence)
	if b.refused != nil {
		b.events.add("", &machine.ConfigValidationErrorEvent{Error: b.refused.Error()})
	}
	if b.active == nil {
		b.setStage(runtimeres.MachineStageMaintenance)
		return b.serveMaintenance()
	}
	for _, name := range bootSequence.phases {
		b.phase(b.actor, name)
	}
	for _, service := range b.services() {
		if service.running {
			b.serviceIs(service.id, machine.ServiceStateEvent_RUNNING, "Started service")
		}
	}
	if err := b.announceKubernetes(); err != nil {
		return fmt.Errorf("node %s: %w", n.Name(), err)
	}
	b.startEtcd()
	if n.world.kubernetes() {
		if err := b.show(); err != nil {
			return fmt.Errorf("node %s: %w", n.Name(), err)
		}
		b.tasks.Go(b.runKubelet)
	}
	return b.serveConfigured()
}

// announceKubernetes makes the key known that signs the certificates of kubelets.
func (b *boot) announceKubernetes() error {
	ca := b.active.K8sAPIServerCAConfig()
	if !b.active.controlPlane() || ca == nil || ca.IssuingCA() == nil {
		return nil
	}
	authority, err := x509.NewCertificateAuthorityFromCertificateAndKey(ca.IssuingCA())
	if err != nil {
		return fmt.Errorf("kubernetes CA: %w", err)
	}
	b.node.world.announce(authority)
	return nil
}

// config is the configuration that the node runs with, or nil in maintenance mode.
func (b *boot) config() *nodeConfig {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.active
}

// prepareEtcd gives a control-plane node its etcd. What the disk holds of a cluster stays while the authority does.
func (n *Node) prepareEtcd(config *nodeConfig) error {
	if !config.controlPlane() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.etcd, n.etcdKey = nil, ""
		return nil
	}
	ca := config.etcdCA()
	if ca == nil {
		return nil // Bootstrap answers with an error
	}
	key := fingerprint(ca.Crt)
	n.mu.Lock()
	known, same := n.etcd, n.etcd != nil && n.etcdKey == key
	n.mu.Unlock()
	if same {
		if existing, ok := known.(*realEtcd); ok {
			// What the configuration says of etcd's arguments counts when etcd starts.
			existing.args = config.Cluster().Etcd().ExtraArgs()
		}
		return nil
	}
	var etcd etcdMember = newModelEtcd(n.world.cluster(ca.Crt), config.hostname(n), n.address, n.Faults)
	if n.world.options.Full {
		path, err := etcdTool(context.Background())
		if err != nil {
			return err
		}
		etcd = &realEtcd{
			path: path, dir: n.dir(), name: config.hostname(n), address: n.address, ca: ca,
			args: config.Cluster().Etcd().ExtraArgs(), faults: n.Faults, peers: func() []string { return n.world.peers(n, key) },
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.etcd, n.etcdKey = etcd, key
	return nil
}

// startEtcd runs the member that the disk holds, or waits for a cluster to join. A node without etcd has booted.
func (b *boot) startEtcd() {
	etcd := b.node.member()
	if etcd == nil {
		b.booted()
		return
	}
	b.tasks.Go(func() {
		var err error
		if etcd.exists() {
			err = etcd.start(b.ctx)
		}
		if err == nil && !etcd.running() {
			err = etcd.join(b.ctx)
		}
		if err != nil || b.ctx.Err() != nil {
			return
		}
		b.serviceIs("etcd", machine.ServiceStateEvent_RUNNING, "Started service")
		b.booted()
		if b.control != nil {
			b.tasks.Go(b.claimManager)
			b.runKubernetes()
		}
	})
}

// peers are the other control-plane nodes of an etcd cluster that are on.
func (w *World) peers(self *Node, key string) []string {
	var addresses []string
	for _, n := range w.Nodes() {
		n.mu.Lock()
		if n != self && n.etcdKey == key && n.boot != nil && n.etcd != nil && n.etcd.running() {
			addresses = append(addresses, n.address)
		}
		n.mu.Unlock()
	}
	return addresses
}

// setStage shows what the node is doing, and returns what it did before.
func (b *boot) setStage(stage runtimeres.MachineStage) (before runtimeres.MachineStage) {
	b.mu.Lock()
	before, b.stage = b.stage, stage
	b.mu.Unlock()
	b.publish()
	return before
}
