// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/maesh-dev/ichor/test/loopback"
)

// apiServer stands for one: it says its name, and whether it is ready.
type apiServer struct {
	*httptest.Server

	address string
	status  atomic.Int32

	// failed counts the checks that it was not ready at.
	failed atomic.Int32
}

// newAPIServers are some at addresses of their own, all on one port.
func newAPIServers(t *testing.T, count int) (servers []*apiServer, port string) {
	t.Helper()
	g := NewWithT(t)
	reservations := &loopback.Reservations{}
	t.Cleanup(func() { _ = reservations.Release() })
	number, err := reservations.Port()
	g.Expect(err).NotTo(HaveOccurred())
	port = strconv.Itoa(number)
	for range count {
		s := &apiServer{}
		s.status.Store(http.StatusOK)
		s.address, err = reservations.Address(number)
		g.Expect(err).NotTo(HaveOccurred())
		listener, err := net.Listen("tcp", net.JoinHostPort(s.address, port))
		g.Expect(err).NotTo(HaveOccurred())
		s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/readyz" {
				status := s.status.Load()
				if status >= http.StatusInternalServerError {
					s.failed.Add(1)
				}

				w.WriteHeader(int(status))
				return
			}
			if r.URL.Path == "/hang" {
				<-r.Context().Done()
				return
			}
			_, _ = io.WriteString(w, s.address)
		}))
		_ = s.Listener.Close()
		s.Listener = listener
		s.StartTLS()
		t.Cleanup(s.Close)
		servers = append(servers, s)
	}
	return servers, port
}

// balanced is a client for the servers behind a balancer.
func balanced(t *testing.T, servers []*apiServer, port string) (url string, c *http.Client) {
	t.Helper()
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	addresses := make([]string, len(servers))
	for i, s := range servers {
		addresses[i] = s.address
	}
	b := newBalancer(listener, port, func() []string { return addresses }, apiServerAnswers)
	t.Cleanup(func() {
		if err := b.close(); err != nil {
			t.Error(err)
		}
	})
	transport, ok := servers[0].Client().Transport.(*http.Transport)
	g.Expect(ok).To(BeTrue())
	transport = transport.Clone()
	transport.DisableKeepAlives, transport.TLSClientConfig.InsecureSkipVerify = true, true
	return "https://" + listener.Addr().String(), &http.Client{Transport: transport, Timeout: 10 * time.Second}
}

// answering are the servers that answer a number of requests.
func answering(g Gomega, url string, c *http.Client) map[string]bool {
	seen := map[string]bool{}
	for range 6 {
		request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
		g.Expect(err).NotTo(HaveOccurred())
		response, err := c.Do(request)
		g.Expect(err).NotTo(HaveOccurred())
		content, err := io.ReadAll(response.Body)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.Body.Close()).To(Succeed())
		seen[string(content)] = true
	}
	return seen
}

// A server that takes connections and is not ready gets none, while another is ready; and one again when it is.
func TestBalancerLeavesOutWhatIsNotReady(t *testing.T) {
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(20 * time.Second)
	servers, port := newAPIServers(t, 3)
	url, c := balanced(t, servers, port)
	g.Eventually(func(g Gomega) { g.Expect(answering(g, url, c)).To(HaveLen(3)) }).Should(Succeed())
	servers[0].status.Store(http.StatusInternalServerError)
	g.Eventually(func(g Gomega) {
		g.Expect(answering(g, url, c)).To(And(HaveLen(2), Not(HaveKey(servers[0].address))))
	}).Should(Succeed())
	servers[0].status.Store(http.StatusForbidden) // it lets nobody ask, and serves
	g.Eventually(func(g Gomega) { g.Expect(answering(g, url, c)).To(HaveLen(3)) }).Should(Succeed())
	for _, s := range servers {
		s.failed.Store(0)
		s.status.Store(http.StatusInternalServerError)
	}

	// What is under way when a server is given up is cut. A check after that is of a server that has been given up.
	g.Eventually(func(g Gomega) {
		for _, s := range servers {
			g.Expect(s.failed.Load()).To(BeNumerically(">", checkFailures))
		}
	}).Should(Succeed())
	// None is ready: a connection to one is better than none.
	g.Consistently(func(g Gomega) { g.Expect(answering(g, url, c)).NotTo(BeEmpty()) }, "4s", "500ms").Should(Succeed())
}

// A caller that waits for a server which no longer serves learns so, before its own patience ends.
func TestBalancerCutsConnections(t *testing.T) {
	g := NewWithT(t)
	servers, port := newAPIServers(t, 1)
	url, c := balanced(t, servers, port)
	c.Timeout = time.Minute
	ended := make(chan error, 1)
	go func() {
		request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url+"/hang", nil)
		if err == nil {
			var response *http.Response
			if response, err = c.Do(request); err == nil {
				err = response.Body.Close()
			}
		}
		ended <- err
	}()
	g.Consistently(ended, "3s").ShouldNot(Receive(), "it serves, and the caller waits")
	servers[0].status.Store(http.StatusServiceUnavailable)
	g.Eventually(ended, "20s").Should(Receive(HaveOccurred()))
}
