// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"errors"
	"fmt"
	"net"
	"sync"
)

// gate is a node's network interface. It outlives boots, so that a connection can be refused or swallowed whatever the
// node does.
type gate struct {
	address string

	mu        sync.Mutex
	listener  net.Listener
	conns     map[*gatedConn]struct{}
	down      bool
	serving   bool
	blackHole bool
	// refused is why it does not listen although it should.
	refused error
	// open is closed unless the gate is a black hole.
	open chan struct{}
	// changed is closed and replaced when the listener may have come back.
	changed chan struct{}
}

func newGate(address string) *gate {
	open := make(chan struct{})
	close(open)
	return &gate{address: address, conns: map[*gatedConn]struct{}{}, open: open, changed: make(chan struct{})}
}

// set applies the faults that are about the network.
func (g *gate) set(down, blackHole bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.down = down
	if blackHole != g.blackHole {
		g.blackHole = blackHole
		if blackHole {
			g.open = make(chan struct{})
		} else {
			close(g.open)
		}
	}
	g.apply()
	if down {
		g.cut()
	}
}

// apply opens or closes the listener. The caller holds the lock.
func (g *gate) apply() {
	listen := g.serving && !g.down
	switch {
	case listen && g.listener == nil:
		listener, err := net.Listen("tcp", g.address)
		if err != nil {
			// The address is reserved for us: somebody has taken it who does not reserve. The next change tries again.
			g.refused = fmt.Errorf("the Talos API cannot listen: %w", err)
			return
		}
		g.refused = nil
		g.listener = listener
	case !listen && g.listener != nil:
		_ = g.listener.Close()
		g.listener = nil
	}
	close(g.changed)
	g.changed = make(chan struct{})
}

// failure is why the gate does not listen although it should, or nil.
func (g *gate) failure() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused
}

// cut closes all connections. The caller holds the lock.
func (g *gate) cut() {
	for conn := range g.conns {
		_ = conn.end()
	}
	clear(g.conns)
}

// start begins to listen for one boot's server.
func (g *gate) start() *bootListener {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.serving = true
	g.apply()
	return &bootListener{gate: g, closed: make(chan struct{})}
}

// stop ends what start began and cuts all connections.
func (g *gate) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.serving = false
	g.apply()
	g.cut()
}

// bootListener is what the server of one boot accepts from. It survives that the gate's listener goes and comes back.
type bootListener struct {
	gate   *gate
	once   sync.Once
	closed chan struct{}
}

func (l *bootListener) Accept() (net.Conn, error) {
	g := l.gate
	for {
		g.mu.Lock()
		listener, changed := g.listener, g.changed
		g.mu.Unlock()
		if listener != nil {
			conn, err := listener.Accept()
			if err == nil {
				return g.wrap(conn), nil
			}
		}
		select {
		case <-l.closed:
			return nil, net.ErrClosed
		default:
		}
		g.mu.Lock()
		same := g.listener == listener
		g.mu.Unlock()
		if !same {
			continue
		}
		select {
		case <-l.closed:
			return nil, net.ErrClosed
		case <-changed:
		}
	}
}

// Close ends Accept, and leaves the connections to the server.
func (l *bootListener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.gate.mu.Lock()
		defer l.gate.mu.Unlock()
		l.gate.serving = false
		l.gate.apply()
	})
	return nil
}

func (l *bootListener) Addr() net.Addr {
	address, err := net.ResolveTCPAddr("tcp", l.gate.address)
	if err != nil {
		return &net.TCPAddr{}
	}
	return address
}

func (g *gate) wrap(conn net.Conn) net.Conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	gated := &gatedConn{Conn: conn, gate: g, closed: make(chan struct{})}
	g.conns[gated] = struct{}{}
	if !g.serving || g.down {
		_ = gated.end()
	}
	return gated
}

// gatedConn passes nothing while its gate is a black hole.
type gatedConn struct {
	net.Conn

	gate   *gate
	once   sync.Once
	closed chan struct{}
}

var errSwallowed = errors.New("connection closed while the node answered nothing")

func (c *gatedConn) wait() error {
	c.gate.mu.Lock()
	open := c.gate.open
	c.gate.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-c.closed:
		return errSwallowed
	}
}

func (c *gatedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if waitErr := c.wait(); waitErr != nil {
		return 0, waitErr
	}
	return n, err
}

func (c *gatedConn) Write(b []byte) (int, error) {
	if err := c.wait(); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *gatedConn) Close() error {
	c.gate.mu.Lock()
	delete(c.gate.conns, c)
	c.gate.mu.Unlock()
	return c.end()
}

// end closes the connection, and lets go whoever waits in it for a black hole to end.
func (c *gatedConn) end() error {
	err := net.ErrClosed
	c.once.Do(func() {
		close(c.closed)
		err = c.Conn.Close()
	})
	return err
}
