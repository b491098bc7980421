// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"

	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
)

// authorityOf makes the Secret with a new cluster's Kubernetes authority.
func authorityOf(t *testing.T, cluster *clusterv1.Cluster) *corev1.Secret {
	t.Helper()

	bundle, err := secrets.New(clock.RealClock{}, version.Newest())
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
		"another endpoint":            {edited(func(c *api.Config) { c.Clusters["prod"].Server = "https://10.0.0.1:6443" }), 0, "the endpoint has changed"},
		"another cluster":             {edited(func(c *api.Config) { c.Clusters = map[string]*api.Cluster{"x": c.Clusters["prod"]} }), 0, "it does not have the cluster"},
		"no user":                     {edited(func(c *api.Config) { c.AuthInfos = nil }), 0, "it has no user"},
		"a token":                     {edited(func(c *api.Config) { c.AuthInfos = map[string]*api.AuthInfo{"a": {Token: "t"}} }), 0, "its client certificate cannot be read"},
		"nothing":                     {[]byte("{"), 0, "it cannot be read"},
		"no key":                      {nil, 0, "it does not have the cluster"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, stale(test.content, cluster, authority, time.Now().Add(test.after))); diff != "" {
				t.Error(diff)
			}
		})
	}
}
