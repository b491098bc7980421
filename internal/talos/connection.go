// SPDX-License-Identifier: Apache-2.0

package talos

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	cosiapi "github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/state"
	cosiclient "github.com/cosi-project/runtime/pkg/state/protobuf/client"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client/dialer"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"k8s.io/utils/clock"
)

// connection is one to an address, with a certificate of one role.
type connection struct {
	grpc  *grpc.ClientConn
	trace *trace

	machine machineapi.MachineServiceClient
	state   state.State

	// until is when it is to be replaced, so that no connection outlives its certificate.
	until time.Time

	mu      sync.Mutex
	uses    int
	dropped bool
}

// dial makes a connection to a node that has a time to answer. A third of it is for connecting, the TLS handshake included. Nothing is sent
// before the first call.
func dial(address string, config *tls.Config, until time.Time, timeout time.Duration) (*connection, error) {
	seen := &trace{}

	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(&tracedCredentials{TransportCredentials: credentials.NewTLS(config), trace: seen}),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			// It minds the environment's proxy, as the rest of the manager does.
			conn, err := dialer.DynamicProxyDialer(ctx, address)
			seen.dialled(err)

			return conn, err
		}),
		grpc.WithConnectParams(grpc.ConnectParams{
			// One attempt: a connection that fails is thrown away, and the next look makes another.
			Backoff: backoff.Config{BaseDelay: time.Minute, Multiplier: 1, MaxDelay: time.Minute}, MinConnectTimeout: timeout / 3,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(constants.GRPCMaxMessageSize)),
		// Names come from users: no service configuration is looked up by them.
		grpc.WithDisableServiceConfig(),
	)
	if err != nil {
		return nil, err
	}

	return &connection{
		grpc: conn, trace: seen, until: until,
		machine: machineapi.NewMachineServiceClient(conn),
		state:   state.WrapCore(cosiclient.NewAdapter(cosiapi.NewStateClient(conn))),
	}, nil
}

// acquire counts one more user; false when the connection has been dropped.
func (c *connection) acquire() bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.dropped {
		return false
	}

	c.uses++

	return true
}

// release counts one user less. The last one of a dropped connection closes it.
func (c *connection) release() {
	c.mu.Lock()
	c.uses--
	last := c.dropped && c.uses == 0
	c.mu.Unlock()

	if last {
		_ = c.grpc.Close() // it is closed or was: there is nothing else to say
	}
}

// drop lets nobody use the connection any more, and closes it when nobody does.
func (c *connection) drop() {
	c.mu.Lock()
	last := !c.dropped && c.uses == 0
	c.dropped = true
	c.mu.Unlock()

	if last {
		_ = c.grpc.Close() // as above
	}
}

// fresh tells whether the connection may be used for another look.
func (c *connection) fresh(clock clock.PassiveClock) bool { return clock.Now().Before(c.until) }

// trace is what is known of why a connection failed: gRPC itself tells it in prose alone.
type trace struct {
	mu        sync.Mutex
	dial      error
	handshake error
	alert     uint8
	connected bool
}

// failure is a copy of a trace.
type failure struct {
	dial, handshake error
	alert           uint8
	connected       bool
}

func (t *trace) failure() failure {
	t.mu.Lock()
	defer t.mu.Unlock()

	return failure{dial: t.dial, handshake: t.handshake, alert: t.alert, connected: t.connected}
}

func (t *trace) dialled(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()

	t.dial, t.handshake, t.alert, t.connected = err, nil, 0, false
}

func (t *trace) shook(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()

	t.handshake, t.connected = err, err == nil

	if alert, ok := alertOf(err); ok {
		t.alert = alert
	}
}

// tracedCredentials are credentials that remember what went wrong.
type tracedCredentials struct {
	credentials.TransportCredentials

	trace *trace
}

func (c *tracedCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		c.trace.shook(err)

		return nil, nil, err
	}

	checked, err := verdict(ctx, conn)
	c.trace.shook(err)

	if err != nil {
		_ = conn.Close() // the error of before is the one that counts

		return nil, nil, err
	}

	return checked, info, nil
}

// verdict waits for the first byte of a node, which speaks first. In TLS 1.3 it refuses a client's certificate when the client has taken the
// handshake for done: who sends something then may have the connection reset, and never read why.
func verdict(ctx context.Context, conn net.Conn) (net.Conn, error) {
	deadline, _ := ctx.Deadline()
	if err := conn.SetReadDeadline(deadline); err != nil {
		return nil, err
	}

	first := make([]byte, 1)
	if _, err := io.ReadFull(conn, first); err != nil {
		return nil, err
	}

	return &spokenConn{Conn: conn, first: first}, conn.SetReadDeadline(time.Time{})
}

func (c *tracedCredentials) Clone() credentials.TransportCredentials {
	return &tracedCredentials{TransportCredentials: c.TransportCredentials.Clone(), trace: c.trace}
}

// spokenConn gives what was read of it before.
type spokenConn struct {
	net.Conn

	first []byte
}

func (c *spokenConn) Read(b []byte) (int, error) {
	if len(c.first) > 0 && len(b) > 0 {
		n := copy(b, c.first)
		c.first = c.first[n:]

		return n, nil
	}

	return c.Conn.Read(b)
}

// Alerts by which a peer refuses a certificate. Source: RFC 8446, section 6.
const (
	alertBadCertificate      uint8 = 42
	alertCertificateExpired  uint8 = 45
	alertUnknownAuthority    uint8 = 48
	alertCertificateRequired uint8 = 116
)

// alertOf finds the alert that a peer sent. The standard library has a type for alerts and gives those of a connection without it: they
// are told apart by its own table of their texts.
func alertOf(err error) (uint8, bool) {
	remote, ok := errors.AsType[*net.OpError](err)
	if !ok || remote.Op != "remote error" || remote.Err == nil {
		return 0, false
	}

	for _, alert := range []uint8{alertBadCertificate, alertCertificateExpired, alertUnknownAuthority, alertCertificateRequired} {
		if remote.Err.Error() == tls.AlertError(alert).Error() {
			return alert, true
		}
	}

	return 0, false
}
