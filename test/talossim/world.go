// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/siderolabs/crypto/x509"

	"github.com/maesh-dev/ichor/test/loopback"
)

// Options are what the nodes of a world have in common. The zero value is right for most tests.
type Options struct {
	// Schematics are the schematics of the image factory: by ID, the names of the system extensions that an image built
	// from it has, as siderolabs/iscsi-tools. An image of a schematic that is not here has none.
	Schematics map[string][]string

	// MissingImages are references that no registry has: pulling one fails with NotFound.
	MissingImages []string

	// Full gives control-plane nodes a real etcd member and a real API server, clusters a controller manager, and all nodes
	// a stand-in for the kubelet. Without it, etcd is a model and there is no Kubernetes.
	Full bool

	// Kubernetes gives light clusters a Kubernetes API in memory: Cluster API's own, of its provider for tests. Each control-plane
	// node serves it while its etcd has a quorum, and each node has a stand-in for the kubelet. memory.go says what it lacks.
	Kubernetes bool

	// NodeMonitorGrace is how long a Kubernetes in memory waits for a kubelet before its Node's conditions become unknown. Default:
	// Kubernetes' 50 seconds.
	NodeMonitorGrace time.Duration

	// DrainTimeout is how long a node of full fidelity waits for the pods that it evicts by itself before it goes on.
	// Default: Talos' five minutes.
	DrainTimeout time.Duration

	// Dir holds what the components of full fidelity write, logs too: a directory for each node. Default: a temporary
	// directory that Close removes.
	Dir string

	// Keep has each machine written down in Dir, so that Restore brings it back when the process has ended. The data of a real etcd
	// member are there anyway; those of the model are gone.
	Keep bool
}

// World is a network of simulated nodes. Its methods may be called from several goroutines.
type World struct {
	options   Options
	addresses loopback.Reservations
	ca        *x509.CertificateAuthority // nobody knows it
	temporary bool

	transcript transcript
	// bootstraps counts the etcd clusters that were made.
	bootstraps atomic.Int64

	mu    sync.Mutex
	nodes []*Node
	// clusters are the etcd clusters, by the authority that their members have in common.
	clusters map[string]*etcdCluster
	// authorities are the Talos authorities whose key a running control-plane node has, by certificate. A worker gets
	// its own certificate from such a node, so it has no API before there is one.
	authorities map[string]*x509.CertificateAuthority
	// upgradeLocks are those of the etcd clusters under which nodes ask whether they may upgrade.
	upgradeLocks map[string]*sync.Mutex
	// managers are the boots on which a cluster's controller manager runs, by the cluster's authority.
	managers map[string]*boot
	// memory has the Kubernetes of light clusters, nil if there is none.
	memory  *memory
	changed chan struct{}
	closed  bool
}

// New makes an empty world. Close it.
func New(options Options) (*World, error) {
	ca, err := x509.NewSelfSignedCertificateAuthority(x509.Organization("nobody knows"))
	if err != nil {
		return nil, fmt.Errorf("simulated nodes: %w", err)
	}
	w := &World{
		options: options, ca: ca, changed: make(chan struct{}), managers: map[string]*boot{}, upgradeLocks: map[string]*sync.Mutex{},
		clusters: map[string]*etcdCluster{}, authorities: map[string]*x509.CertificateAuthority{},
	}
	if options.Keep && options.Dir == "" {
		return nil, errors.New("simulated nodes: Options.Keep wants Options.Dir, a directory that outlives the process")
	}
	if options.Kubernetes && !options.Full {
		if w.memory, err = newMemory(options.NodeMonitorGrace); err != nil {
			return nil, fmt.Errorf("simulated nodes: %w", err)
		}
	}
	if options.Full && options.Dir == "" {
		if w.options.Dir, err = os.MkdirTemp("", "ichor-talos-"); err != nil {
			return nil, fmt.Errorf("simulated nodes: %w", err)
		}
		w.temporary = true
	}
	return w, nil
}

// kubernetes tells whether the nodes have a Kubernetes, a real one or one in memory.
func (w *World) kubernetes() bool { return w.options.Full || w.memory != nil }

// ForTest makes a world that ends with the test.
func ForTest(t testing.TB, options Options) *World {
	t.Helper()
	w, err := New(options)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Errorf("close the simulated nodes: %v", err)
		}
	})
	return w
}

// NewNode makes a machine with an address of its own and leaves it off.
func (w *World) NewNode(options NodeOptions) (*Node, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, errors.New("new node: the world is closed")
	}
	address, err := w.addresses.Address(w.ports()...)
	if err != nil {
		return nil, fmt.Errorf("new node %s: %w", options.Name, err)
	}
	n, err := newNode(w, address, options)
	if err == nil && w.options.Keep {
		// Another machine of that name was there before.
		err = os.RemoveAll(n.dir())
	}
	if err != nil {
		return nil, fmt.Errorf("new node %s: %w", options.Name, err)
	}
	w.nodes = append(w.nodes, n)
	return n, nil
}

// Start makes a machine and boots it with user data, which may be nil. It returns when the node has booted, as PowerOn.
func (w *World) Start(ctx context.Context, options NodeOptions, userData []byte) (*Node, error) {
	n, err := w.NewNode(options)
	if err != nil {
		return nil, err
	}
	n.SetUserData(userData)
	return n, n.PowerOn(ctx)
}

// Nodes returns all machines, in the order in which they were made.
func (w *World) Nodes() []*Node {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.nodes)
}

// AuditLogs are the files in which the API servers of machines of full fidelity note who asked them for what. Those of machines that
// are gone stay, as if they had been shipped elsewhere.
func (w *World) AuditLogs() ([]string, error) {
	if !w.options.Full {
		return nil, nil
	}
	return filepath.Glob(filepath.Join(w.auditDir(), "*.log"))
}

// auditDir cannot be the directory of a node.
func (w *World) auditDir() string { return filepath.Join(w.options.Dir, ".audit") }

func (w *World) auditLog(n *Node) string { return filepath.Join(w.auditDir(), n.Name()+".log") }

// Close powers all machines off.
func (w *World) Close() error {
	w.mu.Lock()
	w.closed = true
	nodes := slices.Clone(w.nodes)
	w.mu.Unlock()
	var stopping sync.WaitGroup
	for _, n := range nodes {
		stopping.Go(n.PowerOff)
	}
	stopping.Wait()
	if w.memory != nil {
		w.memory.close()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.addresses.Release()
	if w.temporary {
		err = errors.Join(err, os.RemoveAll(w.options.Dir))
	}
	return err
}

// Dir is where the components of full fidelity write, a directory for each node.
func (w *World) Dir() string { return w.options.Dir }

// claimManager makes a boot the one that runs its cluster's controller manager, or waits until it may or ctx is done.
func (w *World) claimManager(ctx context.Context, key string, b *boot) bool {
	for {
		w.mu.Lock()
		if w.managers[key] == nil {
			w.managers[key] = b
		}
		mine, changed := w.managers[key] == b, w.changed
		w.mu.Unlock()
		if mine {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// releaseManager lets another node run the controller manager.
func (w *World) releaseManager(b *boot) {
	w.mu.Lock()
	for key, holder := range w.managers {
		if holder == b {
			delete(w.managers, key)
		}
	}
	w.mu.Unlock()
	w.wake()
}

// cluster is the etcd cluster of an authority.
func (w *World) cluster(ca []byte) *etcdCluster {
	key := fingerprint(ca)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.clusters[key] == nil {
		w.clusters[key] = newEtcdCluster()
	}
	return w.clusters[key]
}

// upgradeLock is the lock of an etcd cluster, by the authority that its members have in common.
func (w *World) upgradeLock(key string) *sync.Mutex {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.upgradeLocks[key] == nil {
		w.upgradeLocks[key] = &sync.Mutex{}
	}
	return w.upgradeLocks[key]
}

// wake lets everyone who waits look again.
func (w *World) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.changed)
	w.changed = make(chan struct{})
	for _, c := range w.clusters {
		c.mu.Lock()
		c.notify()
		c.mu.Unlock()
	}
}

// announce makes an authority's key known, as a control-plane node's trustd does.
func (w *World) announce(ca *x509.CertificateAuthority) {
	w.mu.Lock()
	w.authorities[fingerprint(ca.CrtPEM)] = ca
	w.mu.Unlock()
	w.wake()
}

// knows tells whether a certificate's key is known.
func (w *World) knows(certificate []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.authorities[fingerprint(certificate)] != nil
}

// authority waits for the key of an authority.
func (w *World) authority(ctx context.Context, certificate []byte) (*x509.CertificateAuthority, error) {
	for {
		w.mu.Lock()
		ca, changed := w.authorities[fingerprint(certificate)], w.changed
		w.mu.Unlock()
		if ca != nil {
			return ca, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func fingerprint(data []byte) string {
	sum := sha256.Sum256(data)
	return string(sum[:])
}
