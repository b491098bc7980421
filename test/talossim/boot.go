// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/google/uuid"
	"github.com/siderolabs/crypto/x509"
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
	server *grpc.Server
	state  state.State
	// peers are the nodes to which this one passes calls on.
	peers connections
	// tasks are what the node does by itself.
	tasks sync.WaitGroup
	// changing is held by the one call that changes the configuration or installs.
	changing sync.Mutex

	// published is what the state holds, under publishing.
	publishing sync.Mutex
	published  map[string]resource.Resource

	certificate atomic.Pointer[tls.Certificate]

	mu     sync.Mutex
	stage  runtimeres.MachineStage
	active *nodeConfig // nil in maintenance mode
	// left is set when the etcd member left the cluster: the service stays down until the next boot.
	left bool
	// try is closed when a configuration that was applied to try is confirmed or replaced.
	try chan struct{}
	// registered is set when the kubelet's stand-in has registered the Node.
	registered bool

	// control is the node's Kubernetes, which the task that starts it owns until the boot ends.
	control *controlPlane
}

// bootFailures bounds a machine that fails for ever: a real one tries on, but nobody learns more from it.
const bootFailures = 3

// errBootFails is what PowerOn says of a machine that never comes up.
var errBootFails = errors.New("does not boot")

// start boots what the boot loader takes, and notes whether it could. The caller holds power.
func (n *Node) start(ctx context.Context) error {
	err := n.tryBoots(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.bootError = err
	return err
}

// tryBoots boots until an image comes up, or it is sure that none does.
func (n *Node) tryBoots(ctx context.Context) error {
	for range bootFailures {
		n.mu.Lock()
		n.boots++
		image, faults := n.disk.slots[n.disk.next], n.faults
		if !imageMatches(image, faults.BootFails) {
			n.mu.Unlock()
			return n.run(ctx, image, uuid.NewString())
		}
		// Machined fails during its boot sequence: it goes back to the entry before the upgrade, and reboots.
		if n.disk.fallback >= 0 {
			n.disk.next, n.disk.fallback = n.disk.fallback, -1
		}
		n.mu.Unlock()
	}
	return fmt.Errorf("node %s: image %s: %w", n.Name(), n.options.Image, errBootFails)
}

// run boots one image, or goes on with a boot that waited for a configuration.
func (n *Node) run(ctx context.Context, image osImage, id string) error {
	b := &boot{
		node: n, id: id, image: image, stage: runtimeres.MachineStageBooting,
		published: map[string]resource.Resource{},
	}
	b.ctx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))

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
	if err := b.prepareState(); err != nil {
		b.cancel()
		return fmt.Errorf("node %s: %w", n.Name(), err)
	}
	b.server = b.newServer()
	if config := b.active; config != nil {
		if err := n.prepareEtcd(config); err != nil {
			b.cancel()
			return fmt.Errorf("node %s: %w", n.Name(), err)
		}
	}
	n.mu.Lock()
	n.boot = b
	n.mu.Unlock()
	if b.active == nil {
		b.setStage(runtimeres.MachineStageMaintenance)
		return b.serveMaintenance()
	}
	b.setStage(runtimeres.MachineStageRunning)
	if err := b.announceKubernetes(); err != nil {
		return fmt.Errorf("node %s: %w", n.Name(), err)
	}
	b.startEtcd()
	if n.world.options.Full {
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
	same := n.etcd != nil && n.etcdKey == key
	n.mu.Unlock()
	if same {
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

// startEtcd runs the member that the disk holds, or waits for a cluster to join.
func (b *boot) startEtcd() {
	etcd := b.node.member()
	if etcd == nil {
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
		b.publish()
		if b.node.world.options.Full {
			b.startKubernetes()
		}
	})
}

// startKubernetes runs the node's API server, and the controller manager when it is this node's turn. A component that does
// not start is in the node's directory, with its log.
func (b *boot) startKubernetes() {
	n := b.node
	b.control = &controlPlane{node: n, config: b.config(), dir: n.dir()}
	if err := b.control.startAPIServer(b.ctx); err != nil {
		n.fail(err)
		return
	}
	if n.world.claimManager(b.ctx, n.etcdKey, b) {
		if err := b.control.startControllerManager(b.ctx); err != nil {
			n.fail(err)
		}
	}
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

// setStage shows what the node is doing.
func (b *boot) setStage(stage runtimeres.MachineStage) {
	b.mu.Lock()
	b.stage = stage
	b.mu.Unlock()
	b.publish()
}

// unmet are the conditions that keep the node from being ready.
func (b *boot) unmet() []runtimeres.UnmetCondition {
	var unmet []runtimeres.UnmetCondition
	config := b.config()
	if config == nil {
		return nil
	}
	if b.node.Faults().TimeUnsynced {
		unmet = append(unmet, runtimeres.UnmetCondition{Name: "time", Reason: "not synchronized yet"})
	}
	if etcd := b.node.member(); config.controlPlane() && (etcd == nil || !etcd.running()) {
		unmet = append(unmet, runtimeres.UnmetCondition{Name: "services", Reason: "etcd not running"})
	}
	b.mu.Lock()
	registered := b.registered || !b.node.world.options.Full
	b.mu.Unlock()
	if !registered || imageMatches(b.image, b.node.Faults().NeverReady) {
		unmet = append(unmet, runtimeres.UnmetCondition{Name: "nodeReady", Reason: "node is not ready"})
	}
	return unmet
}
