// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// endpointDial bounds the try of one node.
const endpointDial = time.Second

// Endpoint is a load balancer for the API servers of the world's control-plane nodes.
type Endpoint struct {
	world    *World
	listener net.Listener
	port     string
	serving  sync.WaitGroup
	ctx      context.Context //nolint:containedctx // It is the balancer's life.
	cancel   context.CancelFunc
}

// NewEndpoint starts a load balancer on an address of its own, on the port that the API servers listen on too. Close it.
func (w *World) NewEndpoint(port string) (*Endpoint, error) {
	w.mu.Lock()
	address, err := w.addresses.reserve()
	w.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	e, err := w.NewEndpointAt(address, port)
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		return nil, errors.Join(err, w.addresses.free(address))
	}
	return e, nil
}

// NewEndpointAt starts a load balancer at a loopback address that the caller has chosen, for instance the one at which a
// cluster has had its endpoint before. Close it.
func (w *World) NewEndpointAt(address, port string) (*Endpoint, error) {
	if ip := net.ParseIP(address); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("endpoint %s: is no loopback address, such as 127.1.2.3", address)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(address, port))
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	e := &Endpoint{world: w, listener: listener, port: port}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.serving.Go(e.serve)
	return e, nil
}

// URL is what a cluster's configuration has as its endpoint.
func (e *Endpoint) URL() string { return "https://" + e.listener.Addr().String() }

// Address is where the endpoint listens, and the port.
func (e *Endpoint) Address() (address, port string) {
	address, port, _ = net.SplitHostPort(e.listener.Addr().String()) // a listener's address has both
	return address, port
}

// Close cuts all connections, and gives the address back.
func (e *Endpoint) Close() error {
	e.cancel()
	err := e.listener.Close()
	e.serving.Wait()
	address, _ := e.Address()
	e.world.mu.Lock()
	defer e.world.mu.Unlock()
	return errors.Join(err, e.world.addresses.free(address))
}

func (e *Endpoint) serve() {
	for turn := 0; ; turn++ {
		conn, err := e.listener.Accept()
		if err != nil {
			return
		}
		e.serving.Go(func() { e.pass(conn, turn) })
	}
}

// pass connects a caller with the first node that answers, beginning with another one each time.
func (e *Endpoint) pass(conn net.Conn, turn int) {
	defer conn.Close() //nolint:errcheck // It is over.
	nodes := e.world.ControlPlanes()
	for i := range nodes {
		dialer := net.Dialer{Timeout: endpointDial}
		to, err := dialer.DialContext(e.ctx, "tcp", net.JoinHostPort(nodes[(turn+i)%len(nodes)], e.port))
		if err != nil {
			continue
		}
		stop := context.AfterFunc(e.ctx, func() {
			_ = conn.Close()
			_ = to.Close()
		})
		defer stop()
		defer to.Close() //nolint:errcheck // It is over.
		var both sync.WaitGroup
		both.Go(func() { copyAndClose(to, conn) })
		both.Go(func() { copyAndClose(conn, to) })
		both.Wait()
		return
	}
}

func copyAndClose(to, from net.Conn) {
	// However it ends, the other direction ends with it.
	_, _ = io.Copy(to, from)
	_ = to.Close()
}
