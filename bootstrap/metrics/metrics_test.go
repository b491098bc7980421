// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	machinerysecrets "github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/metrics"
	"github.com/maesh-dev/ichor/bootstrap/setup"
	"github.com/maesh-dev/ichor/internal/clustersecrets"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
)

// Names and labels are as Prometheus' conventions have them, and no label names a single machine.
func TestTable(t *testing.T) {
	suffixes := map[metrics.Type]string{metrics.Counter: "_total", metrics.Histogram: "_seconds"}

	for _, metric := range metrics.Table() {
		t.Run(metric.Name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(metric.Name).To(MatchRegexp(`^ichor_bootstrap_[a-z]+(_[a-z]+)*$`))
			g.Expect(metric.Name).To(HaveSuffix(suffixes[metric.Type]))
			g.Expect(metric.Help).To(And(HaveSuffix("."), Not(ContainSubstring("|"))))

			if metric.Type != metrics.Counter {
				g.Expect(metric.Name).NotTo(HaveSuffix("_total"))
			}

			for _, label := range metric.Labels {
				g.Expect(label.Name).To(MatchRegexp(`^[a-z]+$`))
				g.Expect([]string{"machine", "name", "talosconfig", "uid", "node"}).NotTo(ContainElement(label.Name))
				g.Expect(label.Meaning).NotTo(BeEmpty())
			}
		})
	}

	g := NewWithT(t)
	g.Expect(regexp.MustCompile(`(?m)^\| .*`+"`ichor_").FindAllString(metrics.Markdown(), -1)).To(HaveLen(len(metrics.Table())))
}

const namespace = "tenant"

// What is counted is what the cache has, in each state of a cluster's secrets.
func TestInventory(t *testing.T) {
	bundle, crippled := newBundle(t), newBundle(t)
	crippled.TrustdInfo.Token = ""

	tests := map[string]struct {
		objects []client.Object
		want    []string
	}{
		"nothing there": {},
		"nobody has looked at it": {
			objects: []client.Object{config("w-1")},
			want: []string{
				`object_conditions{Ready,TalosConfig,NotYetReported,Unknown} 1`,
				`secrets_bundle_state{c,tenant,Awaited} 1`,
			},
		},
		"counted by reason": {
			objects: []client.Object{
				config("w-1", condition("Ready", "False", "NotReady"), condition("ConfigRendered", "False", "RenderFailed")),
				config("w-2", condition("Ready", "False", "NotReady"), condition("ConfigRendered", "False", "RenderFailed")),
				config("w-3", condition("Ready", "True", "Ready")),
				&bootstrapv1.TalosConfigPatch{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"}},
				&bootstrapv1.TalosClusterConfig{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"},
					Status:     bootstrapv1.TalosClusterConfigStatus{Conditions: []metav1.Condition{condition("Ready", "True", "Ready")}},
				},
			},
			want: []string{
				`object_conditions{ConfigRendered,TalosConfig,RenderFailed,False} 2`,
				`object_conditions{Ready,TalosClusterConfig,Ready,True} 1`,
				`object_conditions{Ready,TalosConfig,NotReady,False} 2`,
				`object_conditions{Ready,TalosConfig,Ready,True} 1`,
				`object_conditions{Ready,TalosConfigPatch,NotYetReported,Unknown} 1`,
				`secrets_bundle_state{c,tenant,Awaited} 1`,
			},
		},
		"lost bundle": {
			objects: []client.Object{config("w-1", condition("Ready", "True", "Ready")), cluster(true)},
			want: []string{
				`object_conditions{Ready,TalosConfig,Ready,True} 1`,
				`secrets_bundle_state{c,tenant,Missing} 1`,
			},
		},
		"lost bundle of a cluster that is not initialized, or was moved": {
			objects: []client.Object{config("w-1", condition("Ready", "True", "Ready")), cluster(false), machineWithData()},
			want: []string{
				`object_conditions{Ready,TalosConfig,Ready,True} 1`,
				`secrets_bundle_state{c,tenant,Missing} 1`,
			},
		},
		"an authority that differs": {
			objects: []client.Object{
				config("w-1", condition("Ready", "True", "Ready")), cluster(true),
				secret("c-talos", secrets.BundleKey, encoded(t, bundle)), secret("c-ca", "tls.crt", []byte("another")),
			},
			want: []string{
				expiry("aggregator-ca", madeAt.Add(authorityLife)),
				expiry("etcd-ca", madeAt.Add(authorityLife)),
				expiry("kubernetes-ca", madeAt.Add(authorityLife)),
				expiry("talos-ca", madeAt.Add(authorityLife)),
				`object_conditions{Ready,TalosConfig,Ready,True} 1`,
				`secrets_bundle_state{c,tenant,Mismatch} 1`,
			},
		},
		"bundle without a part": {
			objects: []client.Object{
				config("w-1", condition("Ready", "True", "Ready")), cluster(true), secret("c-talos", secrets.BundleKey, encoded(t, crippled)),
			},
			want: []string{
				expiry("aggregator-ca", madeAt.Add(authorityLife)),
				expiry("etcd-ca", madeAt.Add(authorityLife)),
				expiry("kubernetes-ca", madeAt.Add(authorityLife)),
				expiry("talos-ca", madeAt.Add(authorityLife)),
				`object_conditions{Ready,TalosConfig,Ready,True} 1`,
				`secrets_bundle_state{c,tenant,Invalid} 1`,
			},
		},
		"bundle that is none": {
			objects: []client.Object{config("w-1", condition("Ready", "True", "Ready")), cluster(true), secret("c-talos", secrets.BundleKey, []byte("nonsense"))},
			want: []string{
				`object_conditions{Ready,TalosConfig,Ready,True} 1`,
				`secrets_bundle_state{c,tenant,Invalid} 1`,
			},
		},
		"certificates": {
			objects: []client.Object{
				config("w-1", condition("Ready", "True", "Ready")), cluster(true),
				secret("c-talos", secrets.BundleKey, encoded(t, bundle)), secret("c-talosconfig", "talosconfig", talosconfig(t, bundle)),
			},
			want: []string{
				expiry("aggregator-ca", madeAt.Add(authorityLife)),
				expiry("etcd-ca", madeAt.Add(authorityLife)),
				expiry("kubernetes-ca", madeAt.Add(authorityLife)),
				expiry("talos-ca", madeAt.Add(authorityLife)),
				expiry("talosconfig", madeAt.Add(time.Hour)),
				`object_conditions{Ready,TalosConfig,Ready,True} 1`,
				`secrets_bundle_state{c,tenant,Available} 1`,
			},
		},
		"another provider's cluster": {objects: []client.Object{cluster(true)}},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			inventory := inventoryOf(test.objects...)

			// Twice: what the first time remembers says the same.
			for range 2 {
				g.Expect(collected(t, inventory)).To(Equal(test.want))
			}
		})
	}
}

// The inventory is in the manager's registry while it runs, and a second manager in the process does not disturb it.
func TestInventoryRuns(t *testing.T) {
	g := NewWithT(t)

	inventory := func() *metrics.Inventory { return inventoryOf(config("w-1")) }
	reported := func() int {
		families, err := ctrlmetrics.Registry.Gather()
		g.Expect(err).NotTo(HaveOccurred())

		return len(slices.DeleteFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() != "ichor_bootstrap_object_conditions" }))
	}

	g.Expect(reported()).To(BeZero())

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)

	go func() { ended <- inventory().Start(ctx) }()

	g.Eventually(reported, time.Minute, time.Millisecond).Should(Equal(1))
	g.Expect(inventory().Start(ctx)).To(Succeed())
	g.Expect(reported()).To(Equal(1))

	stop()
	g.Expect(<-ended).To(Succeed())
	g.Expect(reported()).To(BeZero())
}

func inventoryOf(objects ...client.Object) *metrics.Inventory {
	api := fake.NewClientBuilder().WithScheme(setup.NewScheme()).WithObjects(objects...).Build()
	keeper := clustersecrets.New(api, api, api, events.NewFakeRecorder(1), clocktesting.NewFakePassiveClock(madeAt))

	return metrics.NewInventory(api, keeper)
}

func machineWithData() *clusterv1.Machine {
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "w-1"}}
	machine.Spec.ClusterName, machine.Spec.Bootstrap.DataSecretName = "c", new("w-1")

	return machine
}

// collected are the samples, sorted, as name{values of labels, by the labels' names} value.
func collected(t *testing.T, collector prometheus.Collector) []string {
	t.Helper()

	g := NewWithT(t)
	registry := prometheus.NewPedanticRegistry()
	g.Expect(registry.Register(collector)).To(Succeed())

	families, err := registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())

	var samples []string

	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var values []string
			for _, label := range metric.GetLabel() {
				values = append(values, label.GetValue())
			}

			samples = append(samples, sample(strings.TrimPrefix(family.GetName(), "ichor_bootstrap_"), metric.GetGauge().GetValue(), values...))
		}
	}

	slices.Sort(samples)

	return samples
}

func sample(name string, value float64, labels ...string) string {
	return fmt.Sprintf("%s{%s} %.0f", name, strings.Join(labels, ","), value)
}

func expiry(certificate string, at time.Time) string {
	return sample("certificate_expiry_timestamp_seconds", float64(at.Unix()), certificate, "c", namespace)
}

func config(name string, conditions ...metav1.Condition) *bootstrapv1.TalosConfig {
	return &bootstrapv1.TalosConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
		Status:     bootstrapv1.TalosConfigStatus{Conditions: conditions},
	}
}

func condition(conditionType string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason}
}

func cluster(initialized bool) *clusterv1.Cluster {
	return &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c", UID: "uid-c"},
		Status:     clusterv1.ClusterStatus{Initialization: clusterv1.ClusterInitializationStatus{ControlPlaneInitialized: new(initialized)}},
	}
}

func secret(name, key string, value []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)}, Data: map[string][]byte{key: value},
	}
}

// authorityLife is what machinery gives certificate authorities.
const authorityLife = 10 * 365 * 24 * time.Hour

// madeAt is when the bundle was made.
var madeAt = time.Date(2026, time.May, 4, 3, 2, 1, 0, time.UTC)

func newBundle(t *testing.T) *secrets.Bundle {
	t.Helper()

	g := NewWithT(t)
	contract, err := version.ParseContract("v1.14")
	g.Expect(err).NotTo(HaveOccurred())

	bundle, err := secrets.New(machinerysecrets.NewFixedClock(madeAt), contract, secrets.WithECDSAServiceAccountKey())
	g.Expect(err).NotTo(HaveOccurred())

	return bundle
}

func encoded(t *testing.T, bundle *secrets.Bundle) []byte {
	t.Helper()

	data, err := secrets.Encode(bundle)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return data
}

func talosconfig(t *testing.T, bundle *secrets.Bundle) []byte {
	t.Helper()

	data, err := secrets.Talosconfig(bundle, "c", nil, time.Hour, madeAt)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return data
}
