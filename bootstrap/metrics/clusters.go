// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	machinerysecrets "github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/lru"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/internal/clustersecrets"
	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// States of a cluster's secrets bundle that are no fault. Those that are have the fault's reason.
const (
	bundleAvailable = "Available"
	bundleAwaited   = "Awaited"
)

// collectCluster reports on the secrets of a cluster.
func (i *Inventory) collectCluster(ctx context.Context, cluster client.ObjectKey, to chan<- prometheus.Metric) error {
	state, expiries, err := i.bundle(ctx, cluster)
	if err != nil {
		return err
	}

	to <- prometheus.MustNewConstMetric(i.bundles, prometheus.GaugeValue, 1, cluster.Namespace, cluster.Name, state)

	talosconfig, err := i.secret(ctx, cluster.Namespace, secrets.TalosconfigName(cluster.Name))
	if err != nil {
		return err
	}

	report := func(expiries map[string]time.Time) {
		for name, expiry := range expiries {
			to <- prometheus.MustNewConstMetric(i.certificates, prometheus.GaugeValue, float64(expiry.Unix()), cluster.Namespace, cluster.Name, name)
		}
	}

	report(expiries)

	if talosconfig != nil {
		report(i.expiries.of(talosconfig, talosconfigExpiry))
	}

	return nil
}

// bundle returns the state of the cluster's secrets, and until when its certificate authorities are valid.
func (i *Inventory) bundle(ctx context.Context, key client.ObjectKey) (string, map[string]time.Time, error) {
	cluster := &clusterv1.Cluster{}

	switch err := i.reader.Get(ctx, key, cluster); {
	case apierrors.IsNotFound(err):
		return bundleAwaited, nil, nil
	case err != nil:
		return "", nil, fmt.Errorf("cluster %s: %w", key, err)
	}

	state, err := i.secrets.State(ctx, cluster)
	if err != nil {
		return "", nil, fmt.Errorf("cluster %s: %w", key, err)
	}

	var expiries map[string]time.Time
	if state.Bundle != nil {
		expiries = i.expiries.of(state.Bundle, authorityExpiries)
	}

	return reasonOf(state), expiries, nil
}

func reasonOf(state clustersecrets.State) string {
	switch {
	case state.Fault != nil:
		return state.Fault.Reason
	case state.Bundle == nil:
		return bundleAwaited
	default:
		return bundleAvailable
	}
}

// secret reads one of a cluster's own Secrets, whose values the cache has; nil means that there is none.
func (i *Inventory) secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}

	err := i.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}

	if err != nil {
		return nil, fmt.Errorf("secret %s/%s: %w", namespace, name, err)
	}

	return secret, nil
}

// authorityExpiries is empty for a bundle that cannot be read.
func authorityExpiries(secret *corev1.Secret) map[string]time.Time {
	bundle, err := secrets.Decode(secret.Data[secrets.BundleKey], machinerysecrets.NewClock())
	if err != nil {
		return nil
	}

	return secrets.AuthorityExpiries(bundle)
}

func talosconfigExpiry(secret *corev1.Secret) map[string]time.Time {
	cluster, _ := secrets.ClusterOf(secret.Name)

	expiry, err := secrets.TalosconfigExpiry(secret.Data[secrets.TalosconfigKey], cluster)
	if err != nil {
		return nil
	}

	return map[string]time.Time{secrets.TalosconfigClient: expiry}
}

// maxExpiries bounds what is remembered: two Secrets for each cluster.
const maxExpiries = 4096

// expiryCache remembers what a version of a Secret says, so that certificates are not parsed at each scrape.
type expiryCache struct {
	mu    sync.Mutex
	known *lru.Cache
}

func newExpiryCache() *expiryCache { return &expiryCache{known: lru.New(maxExpiries)} }

func (c *expiryCache) of(secret *corev1.Secret, read func(*corev1.Secret) map[string]time.Time) map[string]time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()

	key := inputs.ContentVersion(secret)

	if cached, ok := c.known.Get(key); ok {
		if expiries, ok := cached.(map[string]time.Time); ok {
			return expiries
		}
	}

	expiries := read(secret)
	c.known.Add(key, expiries)

	return expiries
}
