// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"errors"
	"fmt"
	"net"
)

// Endpoint is a load balancer for the API servers of the world's control-plane nodes.
type Endpoint struct {
	world    *World
	balancer *balancer
}

// NewEndpoint starts a load balancer on an address of its own, on the port that the API servers listen on too. Close it.
func (w *World) NewEndpoint(port string) (*Endpoint, error) {
	number, err := net.LookupPort("tcp", port)
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	address, err := w.addresses.Address(number)
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	return w.listen(address, port)
}

// NewEndpointAt starts a load balancer at a loopback address that the caller has chosen, for instance the one at which a
// cluster has had its endpoint before. Close it.
func (w *World) NewEndpointAt(address, port string) (*Endpoint, error) {
	if ip := net.ParseIP(address); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("endpoint %s: is no loopback address, such as 127.1.2.3", address)
	}
	if err := w.addresses.Hold(address); err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	return w.listen(address, port)
}

// listen starts the load balancer at an address that is reserved, and gives that back if it cannot.
func (w *World) listen(address, port string) (*Endpoint, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, port))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("endpoint: %w", err), w.addresses.Free(address))
	}
	check := apiServerAnswers
	if !w.kubernetes() {
		// There is no API server to ask.
		check = nil
	}
	return &Endpoint{world: w, balancer: newBalancer(listener, port, w.ControlPlanes, check)}, nil
}

// URL is what a cluster's configuration has as its endpoint.
func (e *Endpoint) URL() string { return "https://" + e.balancer.listener.Addr().String() }

// Address is where the endpoint listens, and the port.
func (e *Endpoint) Address() (address, port string) {
	address, port, _ = net.SplitHostPort(e.balancer.listener.Addr().String()) // a listener's address has both
	return address, port
}

// Close cuts all connections, and gives the address back.
func (e *Endpoint) Close() error {
	address, _ := e.Address()
	return errors.Join(e.balancer.close(), e.world.addresses.Free(address))
}
