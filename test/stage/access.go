// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"fmt"
	"net"
	"strconv"

	talosclient "github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/kubeconfig"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/test/talossim"
)

// Talos is Talos' own client for the node at an address, with the talosconfig that Ichor keeps for the cluster's administrator.
// Close it.
func Talos(ctx context.Context, c client.Client, cluster client.ObjectKey, address string) (*talosclient.Client, error) {
	secret := &corev1.Secret{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: secrets.TalosconfigName(cluster.Name)}, secret); err != nil {
		return nil, err
	}

	config, err := clientconfig.FromBytes(secret.Data[secrets.TalosconfigKey])
	if err != nil {
		return nil, fmt.Errorf("secret %s: %w", secret.Name, err)
	}

	return talosclient.New(ctx, talosclient.WithConfig(config), talosclient.WithEndpoints(address),
		talosclient.WithGRPCDialOptions(talossim.QuickReconnect()))
}

// CreateKubeconfig creates the Secret CLUSTER-kubeconfig with a client certificate that is signed by the authority in CLUSTER-ca, for
// a cluster without a control-plane provider, whose part that would be. Cluster API's core manager reaches the cluster with it. It
// would make one itself, half a minute after it has missed the authority.
func CreateKubeconfig(ctx context.Context, c client.Client, key client.ObjectKey) error {
	cluster := &clusterv1.Cluster{}
	if err := c.Get(ctx, key, cluster); err != nil {
		return err
	}

	endpoint := cluster.Spec.ControlPlaneEndpoint
	if endpoint.IsZero() {
		return fmt.Errorf("cluster %s: has no control-plane endpoint yet", key)
	}

	owner := metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: cluster.Name, UID: cluster.UID}
	address := net.JoinHostPort(endpoint.Host, strconv.Itoa(int(endpoint.Port)))

	return client.IgnoreAlreadyExists(kubeconfig.CreateSecretWithOwner(ctx, c, key, address, owner))
}

// KubernetesConfig is an administrator's access to a workload cluster, with its CLUSTER-kubeconfig.
func KubernetesConfig(ctx context.Context, c client.Client, cluster client.ObjectKey) (*rest.Config, error) {
	content, err := kubeconfig.FromSecret(ctx, c, cluster)
	if err != nil {
		return nil, err
	}

	config, err := clientcmd.RESTConfigFromKubeConfig(content)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of cluster %s: %w", cluster, err)
	}

	config.QPS = -1

	return config, nil
}

// Kubernetes is an administrator's client for a workload cluster, with its CLUSTER-kubeconfig.
func Kubernetes(ctx context.Context, c client.Client, cluster client.ObjectKey) (client.Client, error) {
	config, err := KubernetesConfig(ctx, c, cluster)
	if err != nil {
		return nil, err
	}

	return client.New(config, client.Options{})
}
