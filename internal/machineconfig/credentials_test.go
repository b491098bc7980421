// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

func ref(name string) *corev1.LocalObjectReference { return &corev1.LocalObjectReference{Name: name} }

func TestResolveCredentials(t *testing.T) {
	t.Parallel()

	const source = "System layer: TalosClusterConfig c1 spec.registries[r.example.com]: "

	password := map[string][]byte{"password": []byte(registryPassword)}
	certs := testBundle(t).Certs
	pair := func(crt, key []byte) map[string][]byte { return map[string][]byte{"tls.crt": crt, "tls.key": key} }
	secretText := []byte(registryPassword)

	cases := map[string]struct {
		registry bootstrapv1.Registry
		secret   map[string][]byte // of the Secret "creds"; nil: it does not exist
		want     string
	}{
		"password": {
			registry: bootstrapv1.Registry{Username: "u", AuthSecretRef: ref("creds")}, secret: password,
		},
		"missing Secret": {
			registry: bootstrapv1.Registry{Username: "u", AuthSecretRef: ref("creds")},
			want:     `authSecretRef: secret "creds" does not exist in the namespace: create it`,
		},
		"none of the keys": {
			registry: bootstrapv1.Registry{Username: "u", AuthSecretRef: ref("creds")}, secret: map[string][]byte{"Password": []byte(registryPassword)},
			want: `authSecretRef: secret "creds" has none of the keys "password", "auth", "identityToken": set exactly one`,
		},
		"two of the keys": {
			registry: bootstrapv1.Registry{Username: "u", AuthSecretRef: ref("creds")},
			secret:   map[string][]byte{"password": []byte(registryPassword), "identityToken": []byte(registryPassword)},
			want:     `authSecretRef: secret "creds" has the keys "password", "identityToken": exactly one is allowed, remove the others`,
		},
		"empty password": {
			registry: bootstrapv1.Registry{Username: "u", AuthSecretRef: ref("creds")}, secret: map[string][]byte{"password": []byte("\n")},
			want: `authSecretRef: secret "creds" has an empty key "password": fill it`,
		},
		"password that is no text": {
			registry: bootstrapv1.Registry{Username: "u", AuthSecretRef: ref("creds")}, secret: map[string][]byte{"password": []byte(registryPassword + "\xff")},
			want: `authSecretRef: secret "creds": the key "password" is not text in UTF-8, and Talos takes nothing else here`,
		},
		"auth with a NUL": {
			registry: bootstrapv1.Registry{AuthSecretRef: ref("creds")}, secret: map[string][]byte{"auth": []byte(registryPassword + "\x00")},
			want: `authSecretRef: secret "creds": the key "auth" has a NUL, which no text has`,
		},
		"token that is too large": {
			registry: bootstrapv1.Registry{AuthSecretRef: ref("creds")}, secret: map[string][]byte{"identityToken": bytes.Repeat([]byte("x"), 64<<10+1)},
			want: `authSecretRef: secret "creds": the key "identityToken" has 65537 bytes, and at most 65536 are taken here`,
		},
		"certificate authority that is too large": {
			registry: bootstrapv1.Registry{TLS: bootstrapv1.RegistryTLS{CASecretRef: ref("creds")}}, secret: map[string][]byte{"ca.crt": bytes.Repeat([]byte("x"), 256<<10+1)},
			want: `tls.caSecretRef: secret "creds": the key "ca.crt" has 262145 bytes, and at most 262144 are taken here`,
		},
		"client certificate in binary": {
			registry: bootstrapv1.Registry{TLS: bootstrapv1.RegistryTLS{ClientCertificateSecretRef: ref("creds")}}, secret: pair([]byte("\x30\x82\x00"), certs.K8s.Key),
			want: `tls.clientCertificateSecretRef: secret "creds": the key "tls.crt" is not text in UTF-8, and Talos takes nothing else here`,
		},
		"password without a username": {
			registry: bootstrapv1.Registry{AuthSecretRef: ref("creds")}, secret: password,
			want: `authSecretRef: secret "creds" has the key "password", which goes with a username: set username beside authSecretRef`,
		},
		"username with a token": {
			registry: bootstrapv1.Registry{Username: "u", AuthSecretRef: ref("creds")}, secret: map[string][]byte{"identityToken": []byte(registryPassword)},
			want: `authSecretRef: username is set, but secret "creds" has the key "identityToken": a username goes only with the key "password"`,
		},
		"certificate authority under another key": {
			registry: bootstrapv1.Registry{TLS: bootstrapv1.RegistryTLS{CASecretRef: ref("creds")}}, secret: map[string][]byte{"tls.crt": []byte("x")},
			want: `tls.caSecretRef: secret "creds" has no key "ca.crt": add it`,
		},
		"client certificate without its key": {
			registry: bootstrapv1.Registry{TLS: bootstrapv1.RegistryTLS{ClientCertificateSecretRef: ref("creds")}}, secret: map[string][]byte{"tls.crt": []byte("x")},
			want: `tls.clientCertificateSecretRef: secret "creds" has no key "tls.key": add it`,
		},
		"certificate authority": {
			registry: bootstrapv1.Registry{TLS: bootstrapv1.RegistryTLS{CASecretRef: ref("creds")}}, secret: map[string][]byte{"ca.crt": certs.K8s.Crt},
		},
		"certificate authority that is no certificate": {
			registry: bootstrapv1.Registry{TLS: bootstrapv1.RegistryTLS{CASecretRef: ref("creds")}}, secret: map[string][]byte{"ca.crt": secretText},
			want: `tls.caSecretRef: secret "creds" has no PEM certificate under the key "ca.crt": put one or more there`,
		},
		"key under the certificate authority's name": {
			registry: bootstrapv1.Registry{TLS: bootstrapv1.RegistryTLS{CASecretRef: ref("creds")}}, secret: map[string][]byte{"ca.crt": certs.K8s.Key},
			want: `tls.caSecretRef: secret "creds" has no PEM certificate under the key "ca.crt": put one or more there`,
		},
		"client certificate": {
			registry: bootstrapv1.Registry{TLS: bootstrapv1.RegistryTLS{ClientCertificateSecretRef: ref("creds")}}, secret: pair(certs.K8s.Crt, certs.K8s.Key),
		},
		"client certificate with a key of Ed25519": {
			registry: bootstrapv1.Registry{TLS: bootstrapv1.RegistryTLS{ClientCertificateSecretRef: ref("creds")}}, secret: pair(certs.OS.Crt, certs.OS.Key),
		},
		"client certificate that is none": {
			registry: bootstrapv1.Registry{TLS: bootstrapv1.RegistryTLS{ClientCertificateSecretRef: ref("creds")}}, secret: pair(secretText, certs.K8s.Key),
			want: `tls.clientCertificateSecretRef: secret "creds" has no PEM certificate under the key "tls.crt": put one or more there`,
		},
		"client key that is none": {
			registry: bootstrapv1.Registry{TLS: bootstrapv1.RegistryTLS{ClientCertificateSecretRef: ref("creds")}}, secret: pair(certs.K8s.Crt, secretText),
			want: `tls.clientCertificateSecretRef: secret "creds" has no PEM private key under the key "tls.key": put it there`,
		},
		"client key of another certificate": {
			registry: bootstrapv1.Registry{TLS: bootstrapv1.RegistryTLS{ClientCertificateSecretRef: ref("creds")}}, secret: pair(certs.K8s.Crt, certs.Etcd.Key),
			want: `tls.clientCertificateSecretRef: secret "creds": the key "tls.key" is not the private key of the first certificate under "tls.crt": put a pair there`,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			tc.registry.Host = "r.example.com"
			config := &bootstrapv1.TalosClusterConfig{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
			config.Spec.Registries = []bootstrapv1.Registry{tc.registry}

			secrets := map[string]machineconfig.Object{}
			if tc.secret != nil {
				secrets["creds"] = secretWith(tc.secret)
			}

			credentials, err := machineconfig.ResolveCredentials(config, secrets)

			want, got := "", ""
			if tc.want != "" {
				want = source + tc.want
			}

			if err != nil {
				got = err.Error()

				if reason := machineconfig.ReasonOf(err); reason != machineconfig.ReasonInvalidReference {
					t.Errorf("reason %q, want %q", reason, machineconfig.ReasonInvalidReference)
				}
			}

			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("error differs (-want +got):\n%s", diff)
			}

			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
				if text := fmt.Sprintf(verb, credentials); strings.Contains(text, registryPassword) {
					t.Errorf("%s shows the password", verb)
				}
			}
		})
	}
}

func TestSecretNames(t *testing.T) {
	t.Parallel()

	config := &bootstrapv1.TalosClusterConfig{}
	config.Spec.Registries = []bootstrapv1.Registry{
		{Host: "b", AuthSecretRef: ref("creds")},
		{Host: "a", AuthSecretRef: ref("creds"), TLS: bootstrapv1.RegistryTLS{CASecretRef: ref("ca"), ClientCertificateSecretRef: ref("client")}},
	}
	config.Spec.AcceptedCAsSecretRef = ref("roots")

	if diff := cmp.Diff([]string{"ca", "client", "creds", "roots"}, machineconfig.SecretNames(config)); diff != "" {
		t.Errorf("names differ (-want +got):\n%s", diff)
	}

	if names := machineconfig.SecretNames(nil); len(names) != 0 {
		t.Errorf("names of no TalosClusterConfig: %v", names)
	}
}
