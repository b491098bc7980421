// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/maesh-dev/ichor/test/harness"
)

const keyLine = "MC4CAQAwBQYDK2VwBCIEIHrPMtW4cV5ZfHnRZ"

// A secret is found as it is, encoded, and by any of its lines.
func TestLeaksIn(t *testing.T) {
	texts := Texts{}
	texts.Add("hunter2-hunter2!", "ns/registry password")
	texts.Add("-----BEGIN KEY-----\n"+keyLine+"\n-----END KEY-----\n", "ns/c-ca tls.key")
	texts.Add("short", "ns/short password")

	tests := map[string]struct {
		place string
		want  []string
	}{
		"nothing":           {`{"msg":"Rendered the machine config","Secret":{"name":"registry"}} short`, nil},
		"as it is":          {"password hunter2-hunter2! refused", []string{"the log has a value of ns/registry password"}},
		"at the end":        {"hunter2-hunter2!", []string{"the log has a value of ns/registry password"}},
		"a part alone":      {"hunter2-hunter2", nil},
		"encoded":           {base64.StdEncoding.EncodeToString([]byte("hunter2-hunter2!")), []string{"the log has a value of ns/registry password"}},
		"encoded with more": {base64.StdEncoding.EncodeToString([]byte("hunter2-hunter2!\nuser: x")), []string{"the log has a value of ns/registry password"}},
		"in one line":       {`-----BEGIN KEY-----\n` + keyLine + `\n-----END KEY-----`, []string{"the log has a value of ns/c-ca tls.key"}},
		"two": {keyLine + keyLine + "hunter2-hunter2!", []string{
			"the log has a value of ns/c-ca tls.key", "the log has a value of ns/registry password",
		}},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(leaksIn(map[string]string{"the log": test.place}, texts)).To(Equal(test.want))
		})
	}
}

// What is secret in a Secret depends on its key.
func TestAddSecret(t *testing.T) {
	tests := map[string]struct {
		name, key, value string
		secret, public   []string
	}{
		"a password":       {key: "password", value: "hunter2-hunter2", secret: []string{"hunter2-hunter2"}},
		"a certificate":    {key: "tls.crt", value: "hunter2-hunter2", public: []string{"hunter2-hunter2"}},
		"the key of one":   {key: "tls.key", value: "hunter2-hunter2", secret: []string{"hunter2-hunter2"}},
		"a machine config": {key: "value", value: "hostname: hunter2-hunter2", public: []string{"hostname: hunter2-hunter2", "hunter2-hunter2"}},
		"any other":        {key: "nothing-known", value: "hunter2-hunter2", secret: []string{"hunter2-hunter2"}},
		"a kubeconfig": {
			name: "c-kubeconfig", key: "value", value: `
clusters: [{name: my-long-cluster-name, cluster: {server: "https://c.example.com", certificate-authority-data: cHVibGljLXB1YmxpYw==}}]
users: [{name: my-long-admin-name, user: {client-certificate-data: Y2VydGlmaWNhdGU=, client-key-data: c2VjcmV0LXNlY3JldA==}}]`,
			secret: []string{"c2VjcmV0LXNlY3JldA=="}, public: []string{"cHVibGljLXB1YmxpYw==", "Y2VydGlmaWNhdGU=", "https://c.example.com", "my-long-admin-name"},
		},
		"a secrets bundle": {
			key: "bundle", value: `
cluster: {id: an-identity-that-is-public, secret: a-secret-of-the-cluster}
certs: {os: {crt: cHVibGljLXB1YmxpYw==, key: c2VjcmV0LXNlY3JldA==}}
trustdinfo: {token: abcdef.0123456789abcdef}`,
			secret: []string{"a-secret-of-the-cluster", "c2VjcmV0LXNlY3JldA==", "abcdef.0123456789abcdef"},
			public: []string{"an-identity-that-is-public", "cHVibGljLXB1YmxpYw=="},
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g, texts := NewWithT(t), Texts{}
			g.Expect(texts.AddSecret(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: test.name}, Data: map[string][]byte{test.key: []byte(test.value)},
			})).To(Succeed())

			for _, text := range test.secret {
				g.Expect(texts).To(HaveKey(text))
			}

			for _, text := range test.public {
				g.Expect(texts).NotTo(HaveKey(text))
			}
		})
	}
}

// Each place in which a secret may get is searched, and the finding does not repeat it.
func TestLeaks(t *testing.T) {
	const password = "hunter2-hunter2"

	meta := metav1.ObjectMeta{Namespace: "ns", Name: "x"}
	tests := map[string]struct {
		object client.Object
		log    string
		want   string
	}{
		"nowhere":     {object: &corev1.ConfigMap{ObjectMeta: meta}},
		"a Secret":    {object: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "copy"}, Data: map[string][]byte{"password": []byte(password)}}},
		"a ConfigMap": {object: &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"a": "is " + password}}, want: "the ConfigMap ns/x has a value of"},
		"an event":    {object: &corev1.Event{ObjectMeta: meta, Message: "wrong password: " + password}, want: "the Event ns/x has a value of"},
		"a condition": {object: &clusterv1.Machine{ObjectMeta: meta, Status: clusterv1.MachineStatus{
			Conditions: []metav1.Condition{{Type: "Ready", Message: "wrong password: " + password}},
		}}, want: "the Machine ns/x has a value of"},
		"an annotation": {
			object: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x", Annotations: map[string]string{"a": password}}},
			want:   "the Machine ns/x has a value of",
		},
		"a log":     {object: &corev1.ConfigMap{ObjectMeta: meta}, log: "I1 " + password + "\n", want: "the log m.log has a value of"},
		"elsewhere": {object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "x"}, Data: map[string]string{"a": password}}},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g, dir := NewWithT(t), t.TempDir()
			g.Expect(os.WriteFile(filepath.Join(dir, "m.log"), []byte(test.log), 0o600)).To(Succeed())

			registry := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "registry"}, Data: map[string][]byte{"password": []byte(password)}}
			s := &Search{
				client: fake.NewClientBuilder().WithScheme(harness.NewScheme()).WithObjects(registry, test.object).Build(),
				logs:   []string{filepath.Join(dir, "*.log")}, written: Texts{},
				kinds: []kind{
					{corev1.SchemeGroupVersion.WithKind("ConfigMap"), true},
					{corev1.SchemeGroupVersion.WithKind("Event"), true},
					{clusterv1.GroupVersion.WithKind("Machine"), true},
					{corev1.SchemeGroupVersion.WithKind("Node"), false},
				},
			}

			leaks, err := s.Leaks(t.Context(), "ns")
			g.Expect(err).NotTo(HaveOccurred())

			if test.want == "" {
				g.Expect(leaks).To(BeEmpty())

				return
			}

			g.Expect(leaks).To(ConsistOf(And(HavePrefix(test.want), Not(ContainSubstring(password)))))
		})
	}
}

// A value that has been replaced is still looked for.
func TestReplacedSecret(t *testing.T) {
	g := NewWithT(t)
	registry := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "registry"}, Data: map[string][]byte{"password": []byte("the-first-password")}}
	c := fake.NewClientBuilder().WithScheme(harness.NewScheme()).WithObjects(registry).Build()
	s := &Search{client: c, written: Texts{}}
	s.Wrote("what-was-there-before", "ns/registry password")

	_, err := s.Texts(t.Context())
	g.Expect(err).NotTo(HaveOccurred())

	registry.Data["password"] = []byte("the-second-password")
	g.Expect(c.Update(t.Context(), registry)).To(Succeed())

	texts, err := s.Texts(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(texts).To(And(HaveKey("what-was-there-before"), HaveKey("the-first-password"), HaveKey("the-second-password")))
	g.Expect(texts.Origins()).To(Equal([]string{"ns/registry password"}))
}
