// SPDX-License-Identifier: Apache-2.0

package clustersecrets

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
)

// counted counts what is read live.
type counted struct {
	client.Reader
	reads map[string]int
}

func (c counted) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	c.reads[key.Name]++

	return c.Reader.Get(ctx, key, object, options...)
}

// Among more Clusters than bundles are kept decoded, the one that has the bundle already is found, wherever it is; none of them is read live for
// each try, and none takes the place of a bundle that is in use.
func TestSharedAmongManyClusters(t *testing.T) {
	const clusters = maxOpenBundles + 44

	config := &bootstrapv1.TalosClusterConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "config"}}
	config.Spec.SecretsRef = &corev1.LocalObjectReference{Name: "mine"}

	d := newDesk(t, nil)
	live := counted{d.client, map[string]int{}}
	d.keeper.live = live

	mine := d.bundle(func(secret *corev1.Secret) { secret.Name = "mine" })
	others := d.bundle(func(secret *corev1.Secret) { secret.Name = "other" })

	for i := range clusters {
		name := fmt.Sprintf("b-%03d", i)
		d.Expect(d.client.Create(t.Context(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}})).To(Succeed())
		d.Expect(d.client.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: secrets.BundleName(name)}, Data: others.Data,
		})).To(Succeed())
	}

	last := secrets.BundleName(fmt.Sprintf("b-%03d", clusters-1))
	d.change(last, func(secret *corev1.Secret) { secret.Data = mine.Data })

	_, err := d.keeper.Make(t.Context(), clusterC(), config, version.Newest())
	d.fault(err, bootstrapv1.SecretsBundleMismatchReason, fmt.Sprintf("holds the bundle of Cluster b-%03d", clusters-1))

	d.change(last, func(secret *corev1.Secret) { secret.Data = others.Data })

	_, err = d.keeper.Make(t.Context(), clusterC(), config, version.Newest())
	d.Expect(err).NotTo(HaveOccurred())

	for i := range clusters {
		d.Expect(live.reads).NotTo(HaveKey(secrets.BundleName(fmt.Sprintf("b-%03d", i))))
	}

	d.Expect(d.keeper.bundles.open.Len()).To(BeNumerically("<=", 1))
}
