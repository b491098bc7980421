// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// balancerDial bounds the try of one server.
	balancerDial = time.Second
	// checkPeriod is how often each server is asked whether it serves, and checkTimeout how long it may take to answer.
	checkPeriod  = time.Second
	checkTimeout = 2 * time.Second
	// checkFailures in a row make a server one that does not serve. One success makes it one that does.
	checkFailures = 2
)

// balancer passes connections on to servers. It asks them periodically whether they serve: those that do come first, and what is
// connected to one that no longer does is cut, so that a caller finds another instead of waiting for an answer.
type balancer struct {
	listener net.Listener
	port     string
	servers  func() []string
	check    func(ctx context.Context, hostPort string) bool
	running  sync.WaitGroup
	ctx      context.Context //nolint:containedctx // It is the balancer's life.
	cancel   context.CancelFunc

	mu sync.Mutex
	// failures counts the checks that failed in a row, by server. One that is not in it has not been asked.
	failures map[string]int
	// connections are those that are open, by server.
	connections map[string]map[net.Conn]struct{}
}

// newBalancer begins to serve. The servers listen on one port each, at the addresses that the function returns; without a check, all
// are taken for servers that serve.
func newBalancer(listener net.Listener, port string, servers func() []string, check func(context.Context, string) bool) *balancer {
	b := &balancer{
		listener: listener, port: port, servers: servers, check: check,
		failures: map[string]int{}, connections: map[string]map[net.Conn]struct{}{},
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.running.Go(b.serve)
	if check != nil {
		b.running.Go(b.checkAll)
	}
	return b
}

func (b *balancer) close() error {
	b.cancel()
	err := b.listener.Close()
	b.running.Wait()
	return err
}

func (b *balancer) serve() {
	for turn := 0; ; turn++ {
		conn, err := b.listener.Accept()
		if err != nil {
			return
		}
		b.running.Go(func() { b.pass(conn, turn) })
	}
}

// checkAll asks all servers, each in every period.
func (b *balancer) checkAll() {
	ticker := time.NewTicker(checkPeriod)
	defer ticker.Stop()
	for {
		var asking sync.WaitGroup
		for _, server := range b.servers() {
			asking.Go(func() {
				ctx, cancel := context.WithTimeout(b.ctx, checkTimeout)
				defer cancel()
				b.note(server, b.check(ctx, net.JoinHostPort(server, b.port)))
			})
		}
		asking.Wait()
		select {
		case <-b.ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// note keeps the outcome of a check, and cuts the connections to a server that no longer serves.
func (b *balancer) note(server string, serves bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if serves {
		b.failures[server] = 0
		return
	}
	if b.failures[server]++; b.failures[server] == checkFailures {
		for conn := range b.connections[server] {
			_ = conn.Close() // The caller connects again.
		}
	}
}

// inOrder are the servers as a connection tries them: those that serve, beginning with another one each time, and then the others,
// of which one may have come back since it was asked.
func (b *balancer) inOrder(turn int) []string {
	servers := b.servers()
	b.mu.Lock()
	defer b.mu.Unlock()
	var serving, others []string
	for i := range servers {
		server := servers[(turn+i)%len(servers)]
		failures, asked := b.failures[server]
		if b.check == nil || asked && failures < checkFailures {
			serving = append(serving, server)
		} else {
			others = append(others, server)
		}
	}
	return append(serving, others...)
}

// pass connects a caller with the first server that takes the connection.
func (b *balancer) pass(conn net.Conn, turn int) {
	defer conn.Close() //nolint:errcheck // It is over.
	for _, server := range b.inOrder(turn) {
		dialer := net.Dialer{Timeout: balancerDial}
		to, err := dialer.DialContext(b.ctx, "tcp", net.JoinHostPort(server, b.port))
		if err != nil {
			continue
		}
		stop := context.AfterFunc(b.ctx, func() {
			_ = conn.Close()
			_ = to.Close()
		})
		defer stop()
		defer to.Close() //nolint:errcheck // It is over.
		b.opened(server, to)
		defer b.closed(server, to)
		var both sync.WaitGroup
		both.Go(func() { copyAndClose(to, conn) })
		both.Go(func() { copyAndClose(conn, to) })
		both.Wait()
		return
	}
}

func (b *balancer) opened(server string, conn net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.connections[server] == nil {
		b.connections[server] = map[net.Conn]struct{}{}
	}
	b.connections[server][conn] = struct{}{}
}

func (b *balancer) closed(server string, conn net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.connections[server], conn)
}

func copyAndClose(to, from net.Conn) {
	// However it ends, the other direction ends with it.
	_, _ = io.Copy(to, from)
	_ = to.Close()
}

// apiServerAnswers asks an API server whether it is ready. One that does not let everybody ask answers all the same.
func apiServerAnswers(ctx context.Context, hostPort string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+hostPort+"/readyz", nil)
	if err != nil {
		return false
	}
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}, //nolint:gosec // A load balancer knows no authority of the cluster.
	}}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close() //nolint:errcheck // It is not read.
	switch response.StatusCode {
	case http.StatusOK, http.StatusUnauthorized, http.StatusForbidden:
		return true
	default:
		return false
	}
}
