// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/internal/rollout"
	"github.com/maesh-dev/ichor/internal/workload"
	"github.com/maesh-dev/ichor/test/harness"
)

var key = client.ObjectKey{Namespace: "default", Name: "prod"}

// clients has one cluster's client, or says why it has none.
type clients struct {
	client client.Client
	err    error
}

func (c clients) GetUncachedClient(context.Context, client.ObjectKey) (client.Client, error) {
	return c.client, c.err
}

// The Nodes and the API server are real; it plays management and workload cluster at once.
func TestWorkload(t *testing.T) {
	mc := harness.ForTest(t, harness.Options{})

	t.Run("Nodes", func(t *testing.T) { nodes(t, mc.Client()) })
	t.Run("Answers", func(t *testing.T) { answers(t, mc) })
}

func nodes(t *testing.T, c client.Client) {
	g := NewWithT(t)

	for _, each := range []struct {
		name      string
		ready     corev1.ConditionStatus
		addresses []corev1.NodeAddress
	}{
		{"w2", corev1.ConditionFalse, nil},
		{"cp1", corev1.ConditionTrue, []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: "fd00:0::1"},
			{Type: corev1.NodeInternalIP, Address: "10.0.0.1"},
			{Type: corev1.NodeExternalIP, Address: "10.0.0.1"},
			{Type: corev1.NodeHostName, Address: "cp1"},
		}},
		{"w1", corev1.ConditionUnknown, []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "::ffff:10.0.0.2"}}},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: each.name}}
		g.Expect(c.Create(t.Context(), node)).To(Succeed())

		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: each.ready}}
		node.Status.Addresses = each.addresses
		g.Expect(c.Status().Update(t.Context(), node)).To(Succeed())
	}

	got, err := workload.Nodes(t.Context(), clients{client: c}, key)
	g.Expect(err).NotTo(HaveOccurred())

	if diff := gocmp.Diff([]rollout.Node{
		{Name: "cp1", Addresses: []string{"10.0.0.1", "fd00::1"}, Ready: true}, {Name: "w1", Addresses: []string{"10.0.0.2"}}, {Name: "w2"},
	}, got); diff != "" {
		t.Error(diff)
	}

	_, err = workload.Nodes(t.Context(), clients{err: errors.New("connection is not there yet")}, key)
	g.Expect(err).To(MatchError("nodes of cluster prod: connection is not there yet"))

	ended, cancel := context.WithCancel(t.Context())
	cancel()

	_, err = workload.Nodes(ended, clients{client: c}, key)
	g.Expect(err).To(MatchError(context.Canceled))
}

// secretOf is what a kubeconfig's user proves itself by.
func secretOf(g Gomega, content []byte) string {
	config, err := clientcmd.Load(content)
	g.Expect(err).NotTo(HaveOccurred())

	secret := ""
	for _, user := range config.AuthInfos {
		secret = cmp.Or(user.Token, base64.StdEncoding.EncodeToString(user.ClientKeyData))
	}

	g.Expect(secret).NotTo(BeEmpty())

	return secret
}

func answers(t *testing.T, mc *harness.ManagementCluster) {
	g := NewWithT(t)

	content, err := os.ReadFile(mc.KubeconfigPath())
	g.Expect(err).NotTo(HaveOccurred())

	unready := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(unready.Close)

	silent := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(silent.Close)

	edited := func(change func(*api.Cluster)) []byte {
		config, err := clientcmd.Load(content)
		g.Expect(err).NotTo(HaveOccurred())

		for _, cluster := range config.Clusters {
			change(cluster)
		}

		out, err := clientcmd.Write(*config)
		g.Expect(err).NotTo(HaveOccurred())

		return out
	}
	at := func(server string) []byte {
		return edited(func(c *api.Cluster) {
			c.Server, c.InsecureSkipTLSVerify, c.CertificateAuthorityData, c.CertificateAuthority = server, true, nil, ""
		})
	}

	mine := secretOf(g, content)

	tests := map[string]struct {
		content []byte
		want    string
	}{
		"ready":                {content, ""},
		"a path in the server": {edited(func(c *api.Cluster) { c.Server += "/" }), ""},
		"not ready yet":        {at(unready.URL), "cluster prod: the API server says 500 Internal Server Error"},
		"nobody there":         {at("https://127.0.0.1:1"), "connection refused"},
		"no answer":            {at(silent.URL), "ask cluster prod: "},
		"another authority": {
			edited(func(c *api.Cluster) { c.Server = unready.URL }), "certificate signed by unknown authority",
		},
		"no kubeconfig yet":  {nil, "kubeconfig of cluster prod: "},
		"not to be read":     {[]byte("{" + mine), "kubeconfig of cluster prod: it cannot be read"},
		"not to be used":     {edited(func(c *api.Cluster) { c.CertificateAuthorityData = []byte(mine) }), "kubeconfig of cluster prod: it cannot be used"},
		"nothing in its key": {[]byte{}, "kubeconfig of cluster prod: "},
	}

	c := mc.Client()

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "prod-kubeconfig"}}
			g.Expect(client.IgnoreNotFound(c.Delete(t.Context(), secret.DeepCopy()))).To(Succeed())

			if test.content != nil {
				secret.Data = map[string][]byte{"value": test.content}
				g.Expect(c.Create(t.Context(), secret)).To(Succeed())
			}

			begun := time.Now()
			err := workload.Answers(t.Context(), c, key)
			g.Expect(time.Since(begun)).To(BeNumerically("<", 15*time.Second), "a question lasts five seconds at most")

			if test.want == "" {
				g.Expect(err).NotTo(HaveOccurred())

				return
			}

			g.Expect(err).To(MatchError(ContainSubstring(test.want)))

			g.Expect(err.Error()).NotTo(ContainSubstring(mine), "the error has what the client proves itself by")
		})
	}
}
