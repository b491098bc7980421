// SPDX-License-Identifier: Apache-2.0

package secrets_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/role"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/cluster-api/util/certs"

	"github.com/maesh-dev/ichor/internal/secrets"
)

const year = 365 * 24 * time.Hour

func talosconfig(t *testing.T, bundle *secrets.Bundle, ttl time.Duration) []byte {
	t.Helper()

	data, err := secrets.Talosconfig(bundle, "c", []string{"192.0.2.1", "192.0.2.2"}, ttl, birth)
	if err != nil {
		t.Fatal(err)
	}

	return data
}

// clientCertificate is a Secret with a certificate of the bundle's Talos authority that is none of an authority itself.
func clientCertificate(t *testing.T, bundle *secrets.Bundle) *corev1.Secret {
	t.Helper()

	pair, err := bundle.GenerateTalosAPIClientCertificate(role.MakeSet(role.Reader))
	if err != nil {
		t.Fatal(err)
	}

	return tlsSecret("c-ca", pair.Crt, pair.Key)
}

func TestTalosconfig(t *testing.T) {
	t.Parallel()

	bundle := newBundle(t)

	parsed, err := clientconfig.FromBytes(talosconfig(t, bundle, year))
	if err != nil {
		t.Fatal(err)
	}

	current := parsed.Contexts["c"]
	if parsed.Context != "c" || current == nil || len(parsed.Contexts) != 1 {
		t.Fatalf("context %q of %d", parsed.Context, len(parsed.Contexts))
	}

	if diff := cmp.Diff([]string{"192.0.2.1", "192.0.2.2"}, current.Endpoints); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}

	if current.CA != base64.StdEncoding.EncodeToString(bundle.Certs.OS.Crt) {
		t.Error("the authority is not the Talos API's")
	}

	data, err := base64.StdEncoding.DecodeString(current.Crt)
	if err != nil {
		t.Fatal(err)
	}

	certificate, err := certs.DecodeCertPEM(data)
	if err != nil {
		t.Fatal(err)
	}

	got := []string{certificate.NotBefore.Format(time.RFC3339), certificate.NotAfter.Format(time.RFC3339), strings.Join(certificate.Subject.Organization, ",")}
	if diff := cmp.Diff([]string{"2026-03-01T12:00:00Z", "2027-03-01T12:00:00Z", "os:admin"}, got); diff != "" {
		t.Errorf("certificate (-want +got):\n%s", diff)
	}
}

// A client certificate is valid from a little before it is made, and never from before its authority is: nobody would trust it then.
func TestTalosconfigBeginsWithItsAuthority(t *testing.T) {
	t.Parallel()

	bundle := newBundle(t)

	for name, test := range map[string]struct {
		now        time.Time
		begin, end string
	}{
		"later":                  {birth.AddDate(0, 1, 0), "2026-04-01T11:55:00Z", "2027-04-01T12:00:00Z"},
		"right after":            {birth.Add(time.Minute), "2026-03-01T12:00:00Z", "2027-03-01T12:01:00Z"},
		"a clock that is behind": {birth.AddDate(-2, 0, 0), "2026-03-01T12:00:00Z", "2027-03-01T12:00:00Z"},
	} {
		data, err := secrets.Talosconfig(bundle, "c", nil, year, test.now)
		if err != nil {
			t.Fatal(err)
		}

		parsed, err := clientconfig.FromBytes(data)
		if err != nil {
			t.Fatal(err)
		}

		text, err := base64.StdEncoding.DecodeString(parsed.Contexts["c"].Crt)
		if err != nil {
			t.Fatal(err)
		}

		certificate, err := certs.DecodeCertPEM(text)
		if err != nil {
			t.Fatal(err)
		}

		got := []string{certificate.NotBefore.Format(time.RFC3339), certificate.NotAfter.Format(time.RFC3339)}
		if diff := cmp.Diff([]string{test.begin, test.end}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Authorities that nobody takes yet are named, with the time from when all are taken.
func TestPending(t *testing.T) {
	t.Parallel()

	bundle := newBundle(t)

	names, valid := secrets.Pending(bundle, birth.Add(-time.Second))
	if diff := cmp.Diff([]string{"aggregator-ca", "etcd-ca", "kubernetes-ca", "talos-ca"}, names); diff != "" || !valid.Equal(birth) {
		t.Errorf("valid from %s: %s", valid, diff)
	}

	if names, _ := secrets.Pending(bundle, birth); len(names) > 0 {
		t.Errorf("got %v of a bundle that is valid", names)
	}
}

func TestTalosconfigDoesNotOutliveItsAuthority(t *testing.T) {
	t.Parallel()

	bundle := newBundle(t)

	parsed, err := clientconfig.FromBytes(talosconfig(t, bundle, 100*year))
	if err != nil {
		t.Fatal(err)
	}

	data, err := base64.StdEncoding.DecodeString(parsed.Contexts["c"].Crt)
	if err != nil {
		t.Fatal(err)
	}

	client, err := certs.DecodeCertPEM(data)
	if err != nil {
		t.Fatal(err)
	}

	own, err := certs.DecodeCertPEM(bundle.Certs.OS.Crt)
	if err != nil {
		t.Fatal(err)
	}

	if !client.NotAfter.Equal(own.NotAfter) {
		t.Errorf("ends %s, its authority %s", client.NotAfter, own.NotAfter)
	}
}

func TestTalosconfigRefuses(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		change func(*secrets.Bundle)
		ttl    time.Duration
		now    time.Time
		want   string
	}{
		"no time to live":    {change: func(*secrets.Bundle) {}, now: birth, want: "talosconfig of cluster c: the time to live 0s must be above zero"},
		"expired authority":  {change: func(*secrets.Bundle) {}, ttl: year, now: birth.AddDate(11, 0, 0), want: "talosconfig of cluster c: the Talos certificate authority has expired: rotate it"},
		"no authority":       {change: func(b *secrets.Bundle) { b.Certs.OS = nil }, ttl: year, now: birth, want: "talosconfig of cluster c: certs.os is missing"},
		"no certificates":    {change: func(b *secrets.Bundle) { b.Certs = nil }, ttl: year, now: birth, want: "talosconfig of cluster c: certs.os is missing"},
		"another pair's key": {change: func(b *secrets.Bundle) { b.Certs.OS.Key = b.Certs.K8s.Key }, ttl: year, now: birth, want: "talosconfig of cluster c: certs.os.key does not belong to the certificate"},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			bundle := newBundle(t)
			tc.change(bundle)

			_, err := secrets.Talosconfig(bundle, "c", nil, tc.ttl, tc.now)
			if diff := cmp.Diff(tc.want, errorText(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
