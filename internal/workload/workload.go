// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/cluster-api/util/kubeconfig"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/internal/rollout"
)

// timeout bounds one question.
const timeout = 5 * time.Second

// Clients has a client for each workload cluster. Cluster API's ClusterCache is one.
type Clients interface {
	GetUncachedClient(ctx context.Context, cluster client.ObjectKey) (client.Client, error)
}

// Nodes are the Nodes of a cluster, read live.
func Nodes(ctx context.Context, clients Clients, cluster client.ObjectKey) ([]rollout.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	c, err := clients.GetUncachedClient(ctx, cluster)
	if err != nil {
		return nil, fmt.Errorf("nodes of cluster %s: %w", cluster.Name, err)
	}

	list := &corev1.NodeList{}
	if err := c.List(ctx, list); err != nil {
		return nil, fmt.Errorf("nodes of cluster %s: %w", cluster.Name, err)
	}

	out := make([]rollout.Node, len(list.Items))
	for i := range list.Items {
		out[i] = rollout.Node{Name: list.Items[i].Name, Addresses: addresses(&list.Items[i]), Ready: ready(&list.Items[i])}
	}

	slices.SortFunc(out, func(a, b rollout.Node) int { return strings.Compare(a.Name, b.Name) })

	return out, nil
}

// addresses are the IP addresses of a Node, in one form each.
func addresses(node *corev1.Node) []string {
	var out []string

	for _, address := range node.Status.Addresses {
		if parsed, err := netip.ParseAddr(address.Address); err == nil {
			out = append(out, parsed.Unmap().String())
		}
	}

	slices.Sort(out)

	return slices.Compact(out)
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// Answers is nil when the Kubernetes API server of a cluster says that it is ready, at the cluster's endpoint and to whom the cluster's
// kubeconfig names. Cluster API's connection to the cluster may take half a minute more to be there.
func Answers(ctx context.Context, reader client.Reader, cluster client.ObjectKey) error {
	content, err := kubeconfig.FromSecret(ctx, reader, cluster)
	if err != nil {
		return fmt.Errorf("kubeconfig of cluster %s: %w", cluster.Name, err)
	}

	config, err := clientcmd.RESTConfigFromKubeConfig(content)
	if err != nil {
		return fmt.Errorf("kubeconfig of cluster %s: it cannot be read", cluster.Name) // the error may quote it
	}

	config.Timeout = timeout

	answering, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("kubeconfig of cluster %s: it cannot be used", cluster.Name)
	}
	defer answering.CloseIdleConnections()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(config.Host, "/")+"/readyz", nil)
	if err != nil {
		return fmt.Errorf("ask cluster %s: %w", cluster.Name, err)
	}

	response, err := answering.Do(request)
	if err != nil {
		return fmt.Errorf("ask cluster %s: %w", cluster.Name, err)
	}

	if err := response.Body.Close(); err != nil {
		return fmt.Errorf("ask cluster %s: %w", cluster.Name, err)
	}

	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("cluster %s: the API server says %s", cluster.Name, response.Status)
	}

	return nil
}

// Serves is nil when a Kubernetes API server that an authority vouches for is at an address, as https://10.0.0.10:6443, in whatever state it
// is. Only that proves it: that nobody answers, that the connection is not taken or that somebody else answers is an error. Nothing is told to
// the server about who asks. It takes five seconds at most.
func Serves(ctx context.Context, server string, authorityPEM []byte) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	authorities, err := cert.ParseCertsPEM(authorityPEM)
	if err != nil {
		return fmt.Errorf("the cluster's authority: %w", err)
	}

	var proved atomic.Bool

	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{
			MinVersion:         tls.VersionTLS12,
			InsecureSkipVerify: true, //nolint:gosec // VerifyConnection verifies all but the name: who has taken the cluster over may call it otherwise.
			VerifyConnection: func(state tls.ConnectionState) error {
				if err := vouchedFor(state.PeerCertificates, authorities); err != nil {
					return err
				}

				proved.Store(true)

				return nil
			},
		},
	}
	defer transport.CloseIdleConnections()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/readyz", nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", server, err)
	}

	response, err := transport.RoundTrip(request)
	if err == nil {
		err = response.Body.Close()
	}

	// One that is too busy to answer is one all the same.
	if proved.Load() {
		return nil
	}

	if err == nil {
		err = errors.New("no certificate was shown")
	}

	return fmt.Errorf("ask %s: %w", server, err)
}

// vouchedFor says whether a server's certificate is of one of the authorities. Whether it is still valid, or by a clock that is behind not yet,
// makes no difference: a control plane whose certificates nobody has renewed has an etcd all the same.
func vouchedFor(chain []*x509.Certificate, authorities []*x509.Certificate) error {
	if len(chain) == 0 {
		return errors.New("no certificate was shown")
	}

	// An authority that was renewed with its key may have begun after the certificate has ended.
	if slices.ContainsFunc(authorities, func(authority *x509.Certificate) bool { return chain[0].CheckSignatureFrom(authority) == nil }) {
		return nil
	}

	roots, between := x509.NewCertPool(), x509.NewCertPool()
	for _, authority := range authorities {
		roots.AddCert(authority)
	}

	for _, certificate := range chain[1:] {
		between.AddCert(certificate)
	}

	options := x509.VerifyOptions{Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}

	_, err := chain[0].Verify(options)
	if err != nil {
		options.CurrentTime = chain[0].NotBefore
		_, err = chain[0].Verify(options)
	}

	return err
}
