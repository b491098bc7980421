// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
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

	if err := workload.Serves(t.Context(), secure.URL, []byte("none")); err == nil {
		t.Error("proved without an authority")
	}
}
