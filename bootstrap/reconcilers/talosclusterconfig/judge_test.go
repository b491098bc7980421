// SPDX-License-Identifier: Apache-2.0

package talosclusterconfig

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/clustersecrets"
	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
)

// Whether a bundle to copy is another Cluster's depends on that one's, which no version that is remembered tells of: it is looked at again, by
// itself, as long as the bundle is not made.
func TestSharedBundleIsLookedAtAgain(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()

	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme} {
		g.Expect(add(scheme)).To(Succeed())
	}

	made, err := secrets.New(clock.RealClock{}, version.Newest(), secrets.WithECDSAServiceAccountKey())
	g.Expect(err).NotTo(HaveOccurred())
	data, err := secrets.Encode(made)
	g.Expect(err).NotTo(HaveOccurred())

	named := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}
	}
	bundle := func(name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: named(name), Data: map[string][]byte{secrets.BundleKey: data}}
	}

	cluster, other := &clusterv1.Cluster{ObjectMeta: named("c")}, &clusterv1.Cluster{ObjectMeta: named("b")}
	config := &bootstrapv1.TalosClusterConfig{ObjectMeta: named("config")}
	config.Spec.ClusterName = "c"
	config.Spec.Talos.Version = "v1.14.1"
	config.Spec.SecretsRef = &corev1.LocalObjectReference{Name: "mine"}

	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster, other, bundle("mine")).Build()
	r := &Reconciler{Client: api, Secrets: clustersecrets.New(api, api, api, events.NewFakeRecorder(10), clock.RealClock{}), secrets: lru.New(10)}
	type verdict struct {
		reason string
		again  bool
	}

	found := func() (verdicts []verdict) {
		all, err := r.judgeCluster(t.Context(), config, cluster, clusterState{cluster: cluster.UID}, func(ctx context.Context, name string, _ inputs.Version) (*corev1.Secret, error) {
			secret := &corev1.Secret{}
			if err := api.Get(ctx, client.ObjectKey{Namespace: "ns", Name: name}, secret); err != nil {
				return nil, client.IgnoreNotFound(err)
			}

			return secret, nil
		})
		g.Expect(err).NotTo(HaveOccurred())

		for _, each := range all {
			verdicts = append(verdicts, verdict{each.reason, each.again})
		}

		return verdicts
	}
	is := func(reason string) gomegatypes.GomegaMatcher { return Equal([]verdict{{reason, true}}) }

	g.Expect(found()).To(is(bootstrapv1.SecretsBundleNotCreatedReason))
	g.Expect(api.Create(t.Context(), bundle("b-talos"))).To(Succeed())
	g.Expect(found()).To(is(bootstrapv1.SecretsBundleMismatchReason), "the other Cluster has it now")
	g.Expect(api.Delete(t.Context(), other)).To(Succeed())
	g.Expect(found()).To(is(bootstrapv1.SecretsBundleNotCreatedReason), "the other Cluster is gone")
}
