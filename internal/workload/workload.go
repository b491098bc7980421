// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
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
