// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"crypto/tls"
	stdx509 "crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	netutils "k8s.io/utils/net"
	inmemoryruntime "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/runtime"
	"sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/server/api"
	ctrl "sigs.k8s.io/controller-runtime"
)

// memory is the Kubernetes of light clusters: for each cluster the API of Cluster API's in-memory provider, and what of the controller
// manager a Machine's health depends on. It has Nodes, Pods, and the other kinds that Cluster API needs. It has no leases, no
// authorization but that a client has a certificate of the cluster, no admission, no server-side apply, no evictions and no garbage
// collection: a scenario that wants those is one of full fidelity.
type memory struct {
	manager inmemoryruntime.Manager
	cancel  context.CancelFunc
	tasks   sync.WaitGroup
	// grace is the node life-cycle controller's.
	grace time.Duration

	mu       sync.Mutex
	handlers map[string]http.Handler // by cluster
}

const (
	nodeMonitorPeriod = time.Second
	nodeMonitorGrace  = 50 * time.Second

	// memoryServerHeader bounds how long a client may take to say what it wants.
	memoryServerHeader = 10 * time.Second
)

func newMemory(grace time.Duration) (*memory, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("kubernetes in memory: %w", err)
	}
	ctx, cancel := context.WithCancel(ctrl.LoggerInto(context.Background(), logr.Discard()))
	m := &memory{manager: inmemoryruntime.NewManager(scheme), cancel: cancel, grace: grace, handlers: map[string]http.Handler{}}
	if m.grace == 0 {
		m.grace = nodeMonitorGrace
	}
	if err := m.manager.Start(ctx); err != nil {
		cancel()
		return nil, fmt.Errorf("kubernetes in memory: %w", err)
	}
	m.tasks.Go(func() { m.monitorNodes(ctx) })
	return m, nil
}

func (m *memory) close() {
	m.cancel()
	m.tasks.Wait()
}

// handler is the API of a cluster. It is there from the first time on.
func (m *memory) handler(cluster string) http.Handler {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.handlers[cluster]; known != nil {
		return known
	}
	group := hex.EncodeToString([]byte(cluster)) // it is a label of metrics
	m.manager.AddResourceGroup(group)
	m.handlers[cluster] = api.NewAPIServerHandler(m.manager, logr.Discard(), func(string) (string, error) { return group, nil })
	return m.handlers[cluster]
}

// groups are the names that the clusters have in the API's store.
func (m *memory) groups() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []string
	for cluster := range m.handlers {
		all = append(all, hex.EncodeToString([]byte(cluster)))
	}
	return all
}

// monitorNodes makes the conditions of Nodes unknown whose kubelets have not been heard of, as the node life-cycle controller does.
func (m *memory) monitorNodes(ctx context.Context) {
	ticker := time.NewTicker(nodeMonitorPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, group := range m.groups() {
			m.monitor(ctx, group)
		}
	}
}

func (m *memory) monitor(ctx context.Context, group string) {
	c := m.manager.GetResourceGroup(group).GetClient()
	list := &corev1.NodeList{}
	if c.List(ctx, list) != nil {
		return // there is none yet
	}
	for i := range list.Items {
		node := &list.Items[i]
		lost := false
		for j := range node.Status.Conditions {
			condition := &node.Status.Conditions[j]
			if condition.Status == corev1.ConditionUnknown || time.Since(condition.LastHeartbeatTime.Time) < m.grace {
				continue
			}
			condition.Status, condition.Reason, condition.Message = corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status."
			condition.LastTransitionTime.Time = time.Now()
			lost = true
		}
		if lost {
			_ = c.Update(ctx, node) // somebody else was first: the next time
		}
	}
}

// memoryServer serves a cluster's API at one of its control-plane nodes.
type memoryServer struct {
	server *http.Server
	ended  atomic.Bool
}

func (s *memoryServer) Ended() bool { return s.ended.Load() }

func (s *memoryServer) Kill() error { return s.server.Close() }

// Stop is as sudden as Kill: a client cannot tell them apart, and watches would keep a graceful end waiting.
func (s *memoryServer) Stop() error { return s.Kill() }

// startMemoryServer begins to serve the cluster's API at the node's address, with a certificate that the configuration has the authority for.
func (p *controlPlane) startMemoryServer(ctx context.Context) error {
	config, err := p.memoryTLS()
	if err != nil {
		return fmt.Errorf("kube-apiserver: %w", err)
	}
	if err := p.etcdServes(ctx); err != nil {
		return fmt.Errorf("kube-apiserver: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", p.config.serverAddress(p.node.address))
	if err != nil {
		return fmt.Errorf("kube-apiserver: %w", err)
	}
	s := &memoryServer{server: &http.Server{Handler: p.memoryHandler(), ReadHeaderTimeout: memoryServerHeader, ErrorLog: log.New(io.Discard, "", 0)}}
	go func() {
		defer s.ended.Store(true)
		_ = s.server.Serve(tls.NewListener(listener, config)) // it ends when it is closed
	}()
	p.processes["kube-apiserver"] = s
	return nil
}

// etcdServes is an error while the node's etcd member does not run or has no quorum.
func (p *controlPlane) etcdServes(ctx context.Context) error {
	member := p.node.member()
	if member == nil || !member.running() {
		return errNotRunning
	}
	_, err := member.list(ctx, true)
	return err
}

// memoryHandler adds to the API what it lacks: its health, the subresource status, and that nothing is answered without etcd.
func (p *controlPlane) memoryHandler() http.Handler {
	handler := p.node.world.memory.handler(p.node.etcdKey)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := p.etcdServes(r.Context()); err != nil {
			http.Error(w, "etcdserver: "+err.Error(), http.StatusInternalServerError)
			return
		}
		switch r.URL.Path {
		case "/readyz", "/livez", "/healthz":
			w.WriteHeader(http.StatusOK)
			return
		}
		r.URL.Path = strings.TrimSuffix(r.URL.Path, "/status")
		handler.ServeHTTP(w, r)
	})
}

// memoryTLS is the server's certificate, and who may ask.
func (p *controlPlane) memoryTLS() (*tls.Config, error) {
	c := p.config
	services := c.K8sNetworkConfig().ServiceCIDRs()
	ca := c.K8sAPIServerCAConfig()
	if len(services) == 0 || ca == nil || ca.IssuingCA() == nil {
		return nil, errors.New("the configuration lacks service subnets or the certificate authority")
	}
	_, subnet, err := net.ParseCIDR(services[0].String())
	if err != nil {
		return nil, err
	}
	service, err := netutils.GetIndexedIP(subnet, 1)
	if err != nil {
		return nil, err
	}
	names, addresses := p.serverNames(service)
	pair, err := signPair(ca.IssuingCA(), "kube-apiserver", withoutIPs(names), addresses, []stdx509.ExtKeyUsage{stdx509.ExtKeyUsageServerAuth})
	if err != nil {
		return nil, err
	}
	clients := stdx509.NewCertPool()
	clients.AppendCertsFromPEM(joinPEM(ca.AcceptedCAs()))
	return &tls.Config{
		Certificates: []tls.Certificate{*pair.Certificate}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert,
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
	}, nil
}
