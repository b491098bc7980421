// SPDX-License-Identifier: Apache-2.0

package talos

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/role"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// DefaultTimeout is how long one node may take to say everything that is asked of it. All are asked at the same time.
const DefaultTimeout = 10 * time.Second

// Options of a Pool. The zero value is right for a manager.
type Options struct {
	// Clock that certificates are made by. Unset: the real one.
	Clock clock.PassiveClock

	// Timeout for one node, connecting included. Unset: DefaultTimeout.
	Timeout time.Duration
}

// Pool keeps connections to the nodes of all clusters. Its methods may be called from several goroutines. A manager has one, and runs it,
// so that everything is closed when the manager ends.
type Pool struct {
	clock   clock.PassiveClock
	timeout time.Duration

	mu       sync.Mutex
	closed   bool
	clusters map[types.NamespacedName]*Cluster
}

// NewPool makes a pool without connections.
func NewPool(options Options) *Pool {
	p := &Pool{clock: options.Clock, timeout: options.Timeout, clusters: map[types.NamespacedName]*Cluster{}}

	if p.clock == nil {
		p.clock = clock.RealClock{}
	}

	if p.timeout <= 0 {
		p.timeout = DefaultTimeout
	}

	return p
}

// Open returns the client of a cluster's nodes: the one of before as long as the credentials are the same. With others, the connections of
// before are closed. The error says what is wrong with the credentials, and nothing of their content.
func (p *Pool) Open(key types.NamespacedName, credentials Credentials) (*Cluster, error) {
	fingerprint, err := credentials.fingerprint()
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", key.Name, err)
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	if p.closed {
		return nil, fmt.Errorf("cluster %s: %w: the connections to all nodes are closed", key.Name, ErrStopped)
	}

	known := p.clusters[key]
	if known != nil && known.fingerprint == fingerprint {
		return known, nil
	}

	signs, err := newAuthority(key.Name, credentials, p.clock)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", key.Name, err)
	}

	if known != nil {
		known.close()
	}

	made := &Cluster{
		name: key.Name, clock: p.clock, timeout: p.timeout, fingerprint: fingerprint, authority: signs,
		connections: map[string]*connection{}, last: map[string]candidate{},
	}
	p.clusters[key] = made

	return made, nil
}

// Forget closes the connections to a cluster's nodes. Call it when the cluster is gone.
func (p *Pool) Forget(key types.NamespacedName) {
	p.mu.Lock()
	known := p.clusters[key]
	delete(p.clusters, key)
	p.mu.Unlock()

	if known != nil {
		known.close()
	}
}

// Start closes everything when ctx is done. It makes a Pool something that a manager runs.
func (p *Pool) Start(ctx context.Context) error {
	<-ctx.Done()
	p.Close()

	return nil
}

// NeedLeaderElection is false: connections are the process's own.
func (p *Pool) NeedLeaderElection() bool { return false }

// Close closes all connections. The pool can be used no more.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	clusters := p.clusters
	p.clusters = map[types.NamespacedName]*Cluster{}
	p.mu.Unlock()

	for _, cluster := range clusters {
		cluster.close()
	}
}

// Cluster is the client of a cluster's nodes. Its methods may be called from several goroutines.
type Cluster struct {
	name        string
	clock       clock.PassiveClock
	timeout     time.Duration
	fingerprint [sha256.Size]byte
	authority   *authority

	mu     sync.Mutex
	closed bool
	// connections are those of a reader, by the address that is dialled.
	connections map[string]*connection
	// last is the way on which each machine was found last.
	last map[string]candidate
}

// connect gives a connection with a certificate of a role. Those of readers are shared and kept; any other is made for this one use. It is to be
// released.
func (c *Cluster) connect(address string, of role.Role) (*connection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.closed {
		return nil, &nodeError{ErrStopped, "was not asked: the connections of its cluster are closed"}
	}

	if of == role.Reader {
		if known := c.connections[address]; known != nil {
			if known.fresh(c.clock) && known.acquire() {
				return known, nil
			}

			known.drop()
		}
	}

	own, err := c.authority.certificate(of)
	if err != nil {
		return nil, &nodeError{ErrFailed, err.Error()}
	}

	made, err := dial(address, c.authority.config(own), own.until, c.timeout)
	if err != nil {
		return nil, &nodeError{ErrNoAddress, fmt.Sprintf("%q cannot be dialled", address)}
	}

	made.acquire()

	if of == role.Reader {
		c.connections[address] = made
	} else {
		made.drop() // it closes with its release
	}

	return made, nil
}

// discard drops a connection that failed: the next look dials anew, and does not wait for gRPC to try again.
func (c *Cluster) discard(failed *connection, address string) {
	c.mu.Lock()
	if c.connections[address] == failed {
		delete(c.connections, address)
	}
	c.mu.Unlock()

	failed.drop()
}

// keep closes the connections to addresses that are no machine's any more.
func (c *Cluster) keep(addresses map[string]bool, machines map[string]*Machine) {
	c.mu.Lock()

	var stale []*connection

	for address, conn := range c.connections {
		if !addresses[address] {
			stale = append(stale, conn)
			delete(c.connections, address)
		}
	}

	for name := range c.last {
		if machines[name] == nil {
			delete(c.last, name)
		}
	}

	c.mu.Unlock()

	for _, conn := range stale {
		conn.drop()
	}
}

func (c *Cluster) lastWay(machine string) (candidate, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	way, ok := c.last[machine]

	return way, ok
}

func (c *Cluster) found(machine string, way candidate) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.last[machine] = way
}

func (c *Cluster) close() {
	c.mu.Lock()
	c.closed = true
	connections := c.connections
	c.connections = map[string]*connection{}
	c.mu.Unlock()

	for _, conn := range connections {
		conn.drop()
	}
}
