// SPDX-License-Identifier: Apache-2.0

package secrets_test

import (
	"bytes"
	"crypto"
	stdx509 "crypto/x509"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/crypto/x509"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/certs"

	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
)

// allSecrets are the Secrets of one cluster.
func allSecrets(t *testing.T, bundle *secrets.Bundle) []*corev1.Secret {
	t.Helper()

	own, err := secrets.BundleSecret(cluster(), bundle, contract(t, "v1.13"))
	if err != nil {
		t.Fatal(err)
	}

	objects, err := secrets.AuthoritySecrets(cluster(), bundle)
	if err != nil {
		t.Fatal(err)
	}

	return append(objects, own, issued(t, bundle, year))
}

func TestSecretsAreWhatClusterAPIWants(t *testing.T) {
	t.Parallel()

	got := map[string][]string{}

	for _, object := range allSecrets(t, newBundle(t)) {
		keys := []string{}
		for key, value := range object.Data {
			if len(value) == 0 {
				t.Errorf("%s: key %s is empty", object.Name, key)
			}

			keys = append(keys, key)
		}

		slices.Sort(keys)
		got[object.Name] = keys

		meta := metav1.ObjectMeta{
			Namespace: "ns", Name: object.Name, Labels: map[string]string{clusterv1.ClusterNameLabel: "c"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", Name: "c", UID: "uid"}},
		}
		if object.Name == "c-talos" {
			meta.Annotations = map[string]string{"bootstrap.ichor.maesh.dev/config-contract": "v1.13"}
		}

		if object.Name == "c-talosconfig" {
			if len(object.Annotations["bootstrap.ichor.maesh.dev/issued-certificate"]) != 64 {
				t.Error("the talosconfig's Secret does not say which certificate was issued")
			}

			delete(object.Annotations, "bootstrap.ichor.maesh.dev/issued-certificate")

			meta.Annotations = map[string]string{}
		}

		if diff := cmp.Diff(meta, object.ObjectMeta); diff != "" {
			t.Errorf("metadata (-want +got):\n%s", diff)
		}

		if object.Type != "cluster.x-k8s.io/secret" {
			t.Errorf("%s: type %s", object.Name, object.Type)
		}
	}

	want := map[string][]string{
		"c-ca": {"tls.crt", "tls.key"}, "c-etcd": {"tls.crt", "tls.key"}, "c-proxy": {"tls.crt", "tls.key"}, "c-sa": {"tls.crt", "tls.key"},
		"c-talos": {"bundle"}, "c-talosconfig": {"talosconfig"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Secrets and keys (-want +got):\n%s", diff)
	}

	if diff := cmp.Diff([]string{"c-ca", "c-etcd", "c-proxy", "c-sa"}, secrets.AuthorityNames("c")); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// Cluster API's own helpers make kubeconfigs from <cluster>-ca, so they must be able to read it, whatever its kind of key.
func TestClusterAPIReadsTheAuthorities(t *testing.T) {
	t.Parallel()

	for _, object := range allSecrets(t, newBundle(t))[:4] {
		key, err := certs.DecodePrivateKeyPEM(object.Data["tls.key"])
		if err != nil {
			t.Fatalf("%s: %v", object.Name, err)
		}

		var public crypto.PublicKey

		if object.Name == "c-sa" {
			block, _ := pem.Decode(object.Data["tls.crt"])
			if block == nil || block.Type != "PUBLIC KEY" {
				t.Fatalf("c-sa: tls.crt is no public key: %v", block)
			}

			public, err = stdx509.ParsePKIXPublicKey(block.Bytes)
		} else {
			var certificate *stdx509.Certificate
			if certificate, err = certs.DecodeCertPEM(object.Data["tls.crt"]); err == nil {
				public = certificate.PublicKey
			}
		}

		if err != nil {
			t.Fatalf("%s: %v", object.Name, err)
		}

		if own, ok := key.Public().(interface{ Equal(x crypto.PublicKey) bool }); !ok || !own.Equal(public) {
			t.Errorf("%s: key and certificate do not belong together", object.Name)
		}
	}
}

func TestFromSecret(t *testing.T) {
	t.Parallel()

	bundle := newBundle(t)

	object, err := secrets.BundleSecret(cluster(), bundle, contract(t, "v1.13"))
	if err != nil {
		t.Fatal(err)
	}

	read, pinned, err := secrets.FromSecret(object, clock())
	if err != nil {
		t.Fatal(err)
	}

	if pinned != contract(t, "v1.13") || secrets.CheckSameBundle(bundle, "s", read) != nil {
		t.Errorf("reads another bundle, or contract %s", pinned)
	}

	unpinned, err := secrets.BundleSecret(cluster(), bundle, version.Contract{})
	if err != nil {
		t.Fatal(err)
	}

	if _, pinned, err := secrets.FromSecret(unpinned, clock()); err != nil || !pinned.IsZero() {
		t.Errorf("contract %q, error %v, want neither", pinned, err)
	}

	tests := map[string]struct {
		object *corev1.Secret
		want   string
	}{
		"no key":       {object: secretOf("c-talos", nil), want: `secret c-talos: key "bundle" is missing`},
		"other format": {object: secretOf("c-talos", map[string][]byte{"certs": []byte("{}")}), want: `secret c-talos: key "bundle" is missing`},
		"malformed":    {object: secretOf("c-talos", map[string][]byte{"bundle": []byte("hunter2")}), want: `secret c-talos: key "bundle": secrets bundle: must have the fields`},
		"bad contract": {
			object: func() *corev1.Secret {
				object := object.DeepCopy()
				object.Annotations[secrets.ConfigContractAnnotation] = "v1.99"

				return object
			}(),
			want: `secret c-talos: annotation bootstrap.ichor.maesh.dev/config-contract: config contract "v1.99": not known`,
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if _, _, err := secrets.FromSecret(tc.object, clock()); !strings.HasPrefix(errorText(err), tc.want) {
				t.Errorf("error %q, want %q", errorText(err), tc.want)
			}
		})
	}
}

func TestAdopt(t *testing.T) {
	t.Parallel()

	certificate, key := authority(t)
	etcdCertificate, etcdKey := authority(t)
	account := pkcs8Key(t)
	bundle := newBundle(t)

	before, err := secrets.Encode(bundle)
	if err != nil {
		t.Fatal(err)
	}

	adopted, err := secrets.Adopt(bundle, "c",
		tlsSecret("c-ca", certificate, key), tlsSecret("c-etcd", etcdCertificate, etcdKey), secretOf("c-sa", map[string][]byte{"tls.key": account}))
	if err != nil {
		t.Fatal(err)
	}

	if err := secrets.Check(adopted, version.Newest()); err != nil {
		t.Error(err)
	}

	got := [][]byte{adopted.Certs.K8s.Crt, adopted.Certs.K8s.Key, adopted.Certs.Etcd.Crt, adopted.Certs.Etcd.Key, adopted.Certs.K8sServiceAccount.Key, adopted.Certs.K8sAggregator.Key, adopted.Certs.OS.Key}
	want := [][]byte{certificate, key, etcdCertificate, etcdKey, account, bundle.Certs.K8sAggregator.Key, bundle.Certs.OS.Key}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("the adopted bundle has not the user's authorities, or has lost its own")
	}

	after, err := secrets.Encode(bundle)
	if err != nil {
		t.Fatal(err)
	}

	if !bytes.Equal(before, after) {
		t.Error("the given bundle was changed")
	}

	if err := secrets.CheckSupplied(adopted, "c", allSecrets(t, adopted)...); err != nil {
		t.Errorf("the Secrets of the bundle differ from it: %v", err)
	}
}

func TestAdoptRefuses(t *testing.T) {
	t.Parallel()

	certificate, key := authority(t)
	_, otherKey := authority(t)
	oldCertificate, oldKey := authority(t, x509.NotBefore(birth.AddDate(-2, 0, 0)), x509.NotAfter(birth.AddDate(-1, 0, 0)))
	leaf := newBundle(t)

	tests := map[string]struct {
		object *corev1.Secret
		want   string
	}{
		"certificate only":    {object: secretOf("c-ca", map[string][]byte{"tls.crt": certificate}), want: `secret c-ca: key "tls.key" is missing`},
		"key only":            {object: secretOf("c-etcd", map[string][]byte{"tls.key": key}), want: `secret c-etcd: key "tls.crt" is missing`},
		"empty":               {object: secretOf("c-proxy", nil), want: `secret c-proxy: key "tls.crt" is missing`},
		"expired":             {object: tlsSecret("c-ca", oldCertificate, oldKey), want: `secret c-ca: key "tls.crt": the certificate has expired (2025-03-01)`},
		"another key":         {object: tlsSecret("c-ca", certificate, otherKey), want: "secret c-ca: tls.key does not belong to the certificate"},
		"no authority":        {object: clientCertificate(t, leaf), want: "secret c-ca: tls.crt is not the certificate of an authority"},
		"no PEM":              {object: tlsSecret("c-ca", []byte("hunter2"), key), want: "secret c-ca: tls.crt is not a PEM certificate"},
		"no PEM key":          {object: tlsSecret("c-ca", certificate, []byte("hunter2")), want: "secret c-ca: tls.key is not a PEM private key"},
		"no service key":      {object: secretOf("c-sa", map[string][]byte{"tls.crt": certificate}), want: `secret c-sa: key "tls.key" is missing`},
		"bad service key":     {object: tlsSecret("c-sa", nil, certificate), want: `secret c-sa: key "tls.key" is not a PEM private key`},
		"another cluster's":   {object: tlsSecret("d-ca", certificate, key), want: "secret d-ca: not one of the cluster's certificate authorities"},
		"the bundle's Secret": {object: secretOf("c-talos", nil), want: "secret c-talos: not one of the cluster's certificate authorities"},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := secrets.Adopt(newBundle(t), "c", tc.object)
			if !strings.HasPrefix(errorText(err), tc.want) {
				t.Errorf("error %q, want %q", errorText(err), tc.want)
			}

			if strings.Contains(errorText(err), "hunter") {
				t.Errorf("the error tells content: %v", err)
			}
		})
	}
}

func TestCheckSupplied(t *testing.T) {
	t.Parallel()

	bundle := newBundle(t)
	own := bundle.Certs
	certificate, key := authority(t)

	tests := map[string]struct {
		object   *corev1.Secret
		mismatch string
		want     string
	}{
		"the same":                     {object: tlsSecret("c-ca", own.K8s.Crt, own.K8s.Key)},
		"the same in other form":       {object: tlsSecret("c-ca", append([]byte("\n"), own.K8s.Crt...), append(bytes.Clone(own.K8s.Key), '\n'))},
		"the same without key":         {object: secretOf("c-ca", map[string][]byte{"tls.crt": own.K8s.Crt})},
		"the same service account key": {object: secretOf("c-sa", map[string][]byte{"tls.key": own.K8sServiceAccount.Key})},
		"a Secret of another sort":     {object: secretOf("c-kubeconfig", nil)},
		"another authority":            {object: tlsSecret("c-ca", certificate, key), mismatch: "the certificate authority"},
		"the etcd authority as -ca":    {object: tlsSecret("c-ca", own.Etcd.Crt, own.Etcd.Key), mismatch: "the certificate authority"},
		"another key":                  {object: tlsSecret("c-etcd", own.Etcd.Crt, key), mismatch: "the key of the certificate authority"},
		"another service account key":  {object: secretOf("c-sa", map[string][]byte{"tls.key": key}), mismatch: "the key of service accounts"},
		"unreadable":                   {object: tlsSecret("c-ca", []byte("hunter2"), nil), want: `secret c-ca: key "tls.crt" is not a PEM certificate`},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			err := secrets.CheckSupplied(bundle, "c", tc.object)

			want := tc.want
			if tc.mismatch != "" {
				found := &secrets.MismatchError{}
				if !errors.As(err, &found) || found.Secret != tc.object.Name || found.What != tc.mismatch {
					t.Fatalf("error %v is not the mismatch of %s", err, tc.mismatch)
				}

				want = found.Error()
			}

			if errorText(err) != want {
				t.Errorf("error %q, want %q", errorText(err), want)
			}
		})
	}
}

func TestCheckSameBundle(t *testing.T) {
	t.Parallel()

	bundle := newBundle(t)

	if err := secrets.CheckSameBundle(bundle, "mine", bundle); err != nil {
		t.Error(err)
	}

	found := &secrets.MismatchError{}
	if err := secrets.CheckSameBundle(bundle, "mine", newBundle(t)); !errors.As(err, &found) || found.Secret != "mine" {
		t.Errorf("error %v, want a mismatch of Secret mine", err)
	}
}
