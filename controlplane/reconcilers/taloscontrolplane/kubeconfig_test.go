// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/launch"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
)

// authorityOf makes the Secret with a new cluster's Kubernetes authority.
func authorityOf(t *testing.T, cluster *clusterv1.Cluster) *corev1.Secret {
	t.Helper()

	return authorityAt(t, cluster, time.Now())
}

// authorityAt is a cluster's authority that was made then.
func authorityAt(t *testing.T, cluster *clusterv1.Cluster, then time.Time) *corev1.Secret {
	t.Helper()

	bundle, err := secrets.New(testclock.NewFakePassiveClock(then), version.Newest())
	if err != nil {
		t.Fatal(err)
	}

	all, err := secrets.AuthoritySecrets(cluster, bundle)
	if err != nil {
		t.Fatal(err)
	}

	for _, each := range all {
		if each.Name == secret.Name(cluster.Name, secret.ClusterCA) {
			return each
		}
	}

	t.Fatal("there is no authority")

	return nil
}

// A kubeconfig that has just been made is not made again, however old its authority is: Cluster API's client certificates are valid from when
// that is.
func TestNewIsNotStale(t *testing.T) {
	const year = 365 * 24 * time.Hour

	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "prod"}}

	for name, age := range map[string]time.Duration{"its clock is ahead": -time.Hour, "half a year": year / 2, "more than a year": year * 3 / 2, "five years": 5 * year} {
		t.Run(name, func(t *testing.T) {
			authority := authorityAt(t, cluster, time.Now().Add(-age))

			content, err := newKubeconfig(cluster, authority)
			if err != nil {
				t.Fatal(err)
			}

			for after, want := range map[time.Duration]string{
				0: "", year/2 - 24*time.Hour: "", year/2 + 24*time.Hour: "half of the life of its client certificate is over",
			} {
				if diff := cmp.Diff(want, stale(content, cluster, authority, time.Now().Add(after))); diff != "" {
					t.Errorf("after %s: %s", after, diff)
				}
			}
		})
	}
}

// contract: the kubeconfig is renewed at half of the life of its certificate.
func TestStale(t *testing.T) {
	cluster := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "prod"},
		Spec:       clusterv1.ClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "fd00::1", Port: 6443}},
	}
	authority, other := authorityOf(t, cluster), authorityOf(t, cluster)

	content, err := newKubeconfig(cluster, authority)
	if err != nil {
		t.Fatal(err)
	}

	foreign, err := newKubeconfig(cluster, other)
	if err != nil {
		t.Fatal(err)
	}

	edited := func(change func(*api.Config)) []byte {
		config, err := clientcmd.Load(content)
		if err != nil {
			t.Fatal(err)
		}

		change(config)

		out, err := clientcmd.Write(*config)
		if err != nil {
			t.Fatal(err)
		}

		return out
	}

	foreignConfig, err := clientcmd.Load(foreign)
	if err != nil {
		t.Fatal(err)
	}

	const year = 365 * 24 * time.Hour

	tests := map[string]struct {
		content []byte
		after   time.Duration
		want    string
	}{
		"new":                         {content, 0, ""},
		"before half":                 {content, year/2 - 24*time.Hour, ""},
		"after half":                  {content, year/2 + 24*time.Hour, "half of the life of its client certificate is over"},
		"another authority":           {foreign, 0, "the certificate authority has changed"},
		"a user of another authority": {edited(func(c *api.Config) { c.AuthInfos = foreignConfig.AuthInfos }), 0, "the certificate authority has changed"},
		"it trusts another authority": {edited(func(c *api.Config) {
			c.Clusters["prod"].CertificateAuthorityData = foreignConfig.Clusters["prod"].CertificateAuthorityData
		}), 0, "the certificate authority has changed"},
		"another endpoint": {edited(func(c *api.Config) { c.Clusters["prod"].Server = "https://10.0.0.1:6443" }), 0, "the endpoint has changed"},
		"another cluster":  {edited(func(c *api.Config) { c.Clusters = map[string]*api.Cluster{"x": c.Clusters["prod"]} }), 0, "it does not have the cluster"},
		"no user":          {edited(func(c *api.Config) { c.AuthInfos = nil }), 0, "it has no user"},
		"a token":          {edited(func(c *api.Config) { c.AuthInfos = map[string]*api.AuthInfo{"a": {Token: "t"}} }), 0, "its client certificate cannot be read"},
		"nothing":          {[]byte("{"), 0, "it cannot be read"},
		"no key":           {nil, 0, "it does not have the cluster"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, stale(test.content, cluster, authority, time.Now().Add(test.after))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// everySecret is what the cache of metadata knows: every Secret, whatever its labels.
type everySecret struct {
	cache.Cache
	reader client.Reader
}

func (e everySecret) Get(ctx context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	found := &corev1.Secret{}
	if err := e.reader.Get(ctx, key, found); err != nil {
		return err
	}

	kept, err := launch.NewSlimmer().Metadata(MetadataAnnotations()...)(&metav1.PartialObjectMetadata{ObjectMeta: found.ObjectMeta})
	if err != nil {
		return err
	}

	metadata, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return fmt.Errorf("%T is asked for", object)
	}

	*metadata = *kept.(*metav1.PartialObjectMetadata)

	return nil
}

// The kubeconfig is made when there is none and taken over when it is Cluster API's own; one that a user has made is left as it is.
//
// contract: <cluster>-kubeconfig has Cluster API's type and label, the key value, and the control plane as its controller; a user's own is not touched.
func TestKubeconfigOfAUser(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	cluster := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "prod"},
		Spec:       clusterv1.ClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "10.0.0.1", Port: 6443}},
	}
	authority := authorityOf(t, cluster)
	labelled := map[string]string{clusterv1.ClusterNameLabel: "prod"}
	before := metav1.OwnerReference{APIVersion: controlplanev1.GroupVersion.String(), Kind: talosControlPlaneKind, Name: "cp", UID: "before", Controller: new(true)}

	content, err := newKubeconfig(cluster, authority)
	if err != nil {
		t.Fatal(err)
	}

	tests := map[string]struct {
		existing *corev1.Secret
		cached   bool
		ours     bool
	}{
		"none":                              {ours: true},
		"a user's, without the label":       {existing: &corev1.Secret{Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"value": []byte("mine")}}},
		"a user's, with the label":          {existing: &corev1.Secret{Type: corev1.SecretTypeOpaque, ObjectMeta: metav1.ObjectMeta{Labels: labelled}, Data: map[string][]byte{"value": []byte("mine")}}, cached: true},
		"of Cluster API, of another life":   {existing: &corev1.Secret{Type: clusterv1.ClusterSecretType, ObjectMeta: metav1.ObjectMeta{Labels: labelled, OwnerReferences: []metav1.OwnerReference{before}}, Data: map[string][]byte{"value": content}}, cached: true, ours: true},
		"of Cluster API, without a content": {existing: &corev1.Secret{Type: clusterv1.ClusterSecretType, ObjectMeta: metav1.ObjectMeta{Labels: labelled}}, cached: true, ours: true},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			key := client.ObjectKey{Namespace: "ns", Name: "prod-kubeconfig"}
			cached := fake.NewClientBuilder().WithScheme(scheme).WithObjects(authority.DeepCopy())
			all := fake.NewClientBuilder().WithScheme(scheme)

			if test.existing != nil {
				existing := test.existing.DeepCopy()
				existing.Namespace, existing.Name = key.Namespace, key.Name
				all = all.WithObjects(existing.DeepCopy())

				if test.cached {
					cached = cached.WithObjects(existing)
				}
			}

			c := cached.Build()
			r := &Reconciler{
				Client: c, Metadata: everySecret{reader: all.Build()}, Clock: clock.RealClock{}, deferrer: &deferring{}, Recorder: events.NewFakeRecorder(5),
			}
			seen := &observation{controlPlane: planeWith(nil), cluster: cluster, clusterName: "prod", bundle: &corev1.Secret{}}

			if err := r.ensureKubeconfig(t.Context(), seen); err != nil {
				t.Fatal(err)
			}

			got := &corev1.Secret{}

			err := c.Get(t.Context(), key, got)
			if !test.ours {
				if test.cached != (err == nil) || test.cached && (string(got.Data["value"]) != "mine" || len(got.OwnerReferences) > 0) {
					t.Errorf("the user's was touched: %v %s %v", err, got.Data["value"], got.OwnerReferences)
				}

				return
			}

			if err != nil {
				t.Fatal(err)
			}

			if owner := metav1.GetControllerOf(got); owner == nil || owner.UID != "plane" || len(got.OwnerReferences) != 1 {
				t.Errorf("owners: %v", got.OwnerReferences)
			}

			if got.Type != clusterv1.ClusterSecretType || got.Labels[clusterv1.ClusterNameLabel] != "prod" || len(got.Data) != 1 {
				t.Errorf("type %s, labels %v, %d keys", got.Type, got.Labels, len(got.Data))
			}

			if why := stale(got.Data["value"], cluster, authority, time.Now()); why != "" {
				t.Error(why)
			}
		})
	}
}
