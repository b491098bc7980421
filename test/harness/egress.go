// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"sigs.k8s.io/yaml"
)

// egressConfig sends what the API server wants from the cluster's network, which are webhooks behind Services, through a proxy.
// Webhooks with a URL are none of it.
const egressConfig = "egress.yaml"

// resolver finds the process behind a port of a Service's cluster IP.
type resolver func(ctx context.Context, clusterIP string, port int) (string, error)

// egress is the way from the API server to the processes of Pods. It is kube-proxy and the network of Pods in one: the API
// server, told to use an egress proxy for the cluster's network, asks it to connect to cluster IPs. So webhook configurations
// stay as they are installed, and the certificate is checked for the Service's name.
type egress struct {
	server  *http.Server
	resolve atomic.Pointer[resolver]
}

func (mc *ManagementCluster) startEgress() (*egress, error) {
	// The name of a socket may have about a hundred characters, so it is not in the cluster's own directory.
	dir, err := os.MkdirTemp("", "ichor-egress-")
	if err != nil {
		return nil, fmt.Errorf("egress: %w", err)
	}
	mc.parts = append(mc.parts, func() error { return os.RemoveAll(dir) })
	socket := filepath.Join(dir, "proxy")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("egress: %w", err)
	}
	e := &egress{}
	e.server = &http.Server{Handler: e, ReadHeaderTimeout: time.Minute}
	go e.server.Serve(listener) //nolint:errcheck // It ends with Close.
	mc.parts = append(mc.parts, e.server.Close)

	content, err := yaml.Marshal(map[string]any{
		"apiVersion": "apiserver.k8s.io/v1beta1",
		"kind":       "EgressSelectorConfiguration",
		"egressSelections": []any{map[string]any{
			"name": "cluster",
			"connection": map[string]any{
				"proxyProtocol": "HTTPConnect",
				"transport":     map[string]any{"uds": map[string]any{"udsName": socket}},
			},
		}},
	})
	if err != nil {
		return nil, err
	}
	return e, os.WriteFile(filepath.Join(mc.dir, egressConfig), content, 0o600)
}

// egressArguments are those of the API server.
func (mc *ManagementCluster) egressArguments() []string {
	if mc.egress == nil {
		return nil
	}
	return []string{"--egress-selector-config-file=" + filepath.Join(mc.dir, egressConfig)}
}

// ServeHTTP connects to what CONNECT names.
func (e *egress) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only CONNECT", http.StatusMethodNotAllowed)
		return
	}
	backend, err := e.dial(r.Context(), r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		http.Error(w, "the connection cannot be taken over", http.StatusInternalServerError)
		return
	}
	client, _, err := hijacker.Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = errors.Join(client.Close(), backend.Close())
		return
	}
	go pipe(client, backend)
	go pipe(backend, client)
}

func (e *egress) dial(ctx context.Context, address string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return nil, err
	}
	resolve := e.resolve.Load()
	if resolve == nil {
		return nil, errors.New("no Pods run yet")
	}
	endpoint, err := (*resolve)(ctx, host, port)
	if err != nil {
		return nil, err
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", endpoint)
}

// pipe copies until one side ends, and then ends both.
func pipe(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = errors.Join(to.Close(), from.Close())
}
