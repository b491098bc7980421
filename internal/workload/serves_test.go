// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/maesh-dev/ichor/internal/workload"
)

// Only what shows a certificate of the authority, and has its key, is proof, whatever else it says or does not say.
func TestServes(t *testing.T) {
	t.Parallel()

	server := func(start func(*httptest.Server), handle http.HandlerFunc) *httptest.Server {
		s := httptest.NewUnstartedServer(handle)
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		start(s)
		t.Cleanup(s.Close)

		return s
	}

	well := func(http.ResponseWriter, *http.Request) {}
	secure := server((*httptest.Server).StartTLS, well)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})

	content, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}

	another, err := tls.X509KeyPair(content, key)
	if err != nil {
		t.Fatal(err)
	}

	foreign := server(func(s *httptest.Server) {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{another}, MinVersion: tls.VersionTLS12}
		s.StartTLS()
	}, well)

	// Those of a control plane that nobody has looked after for a year.
	expired, root, renewed := expiredOf(t)
	old := server(func(s *httptest.Server) {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{expired}, MinVersion: tls.VersionTLS12}
		s.StartTLS()
	}, well)
	authority = append(authority, root...)

	// A load balancer without a backend takes connections, and nothing comes.
	mute, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = mute.Close() })

	tests := map[string]struct {
		server string
		// want is in the error; empty when it is proved.
		want string
	}{
		"well":                                 {secure.URL, ""},
		"by another name":                      {strings.Replace(secure.URL, "127.0.0.1", "localhost", 1), ""},
		"its certificate has expired":          {old.URL, ""},
		"not ready":                            {server((*httptest.Server).StartTLS, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }).URL, ""},
		"it shows who it is, and says nothing": {server((*httptest.Server).StartTLS, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }).URL, ""},
		"of another authority":                 {foreign.URL, "certificate signed by unknown authority"},
		"without a certificate":                {strings.Replace(server((*httptest.Server).Start, well).URL, "http:", "https:", 1), "tls: first record does not look like a TLS handshake"},
		"nobody":                               {"https://127.0.0.1:1", "connection refused"},
		"a load balancer without a backend":    {"https://" + mute.Addr().String(), "context deadline exceeded"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			begun := time.Now()
			err := workload.Serves(t.Context(), test.server, authority)

			if (err == nil) != (test.want == "") || (err != nil && !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v, want %q", err, test.want)
			}

			if took := time.Since(begun); took > 15*time.Second {
				t.Errorf("it took %s: a question lasts five seconds at most", took)
			}
		})
	}

	_, alien, _ := expiredOf(t)
	if err := workload.Serves(t.Context(), old.URL, alien); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("an expired certificate of another authority is a proof: %v", err)
	}

	if err := workload.Serves(t.Context(), old.URL, renewed); err != nil {
		t.Errorf("an expired certificate is no proof when its authority was renewed after it: %v", err)
	}

	if err := workload.Serves(t.Context(), secure.URL, []byte("none")); err == nil {
		t.Error("proved without an authority")
	}
}

// expiredOf is a server's certificate that was valid until a month ago, and the authority that it is of; and the same authority, renewed today.
func expiredOf(t *testing.T) (serving tls.Certificate, authority, renewed []byte) {
	t.Helper()

	begin := time.Now().AddDate(-1, -1, 0)
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, NotBefore: begin, NotAfter: begin.AddDate(10, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "kube-apiserver"}, NotBefore: begin.Add(time.Hour), NotAfter: begin.AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}

	signer, signed := signedBy(t, root, root, nil)
	key, shown := signedBy(t, leaf, root, signer)

	root.NotBefore = time.Now().Add(-time.Hour)

	again, err := x509.CreateCertificate(rand.Reader, root, root, &signer.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}

	encode := func(content []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: content})
	}

	return tls.Certificate{Certificate: [][]byte{shown}, PrivateKey: key}, encode(signed), encode(again)
}

// signedBy makes a certificate with a key of its own. Without a signer it signs itself.
func signedBy(t *testing.T, template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (key *ecdsa.PrivateKey, content []byte) {
	t.Helper()

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	if signer == nil {
		signer = key
	}

	if content, err = x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer); err != nil {
		t.Fatal(err)
	}

	return key, content
}
