// SPDX-License-Identifier: Apache-2.0

package talosconfig_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/setup"
)

// refusal is an answer of an API server that has done nothing.
func refusal(code int, reason metav1.StatusReason, message string, header http.Header) answer {
	return func(http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			return respond(request, code, reason, message, header)
		})
	}
}

func respond(request *http.Request, code int, reason metav1.StatusReason, message string, header http.Header) (*http.Response, error) {
	body, err := json.Marshal(&metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
	if err != nil {
		return nil, err
	}

	answer := http.Header{"Content-Type": {"application/json"}}
	maps.Copy(answer, header)

	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: answer,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: request,
	}, nil
}

// afterwards has the API server do what it is asked to, and gives another answer.
func afterwards(instead answer) answer {
	return func(server http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := server.RoundTrip(request)
			if err != nil {
				return nil, err
			}

			if err := response.Body.Close(); err != nil {
				return nil, err
			}

			return instead(server).RoundTrip(request)
		})
	}
}

func cut(http.RoundTripper) http.RoundTripper {
	return roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("read: connection reset by peer") })
}

// nameIn is the name of the object that a request creates.
func nameIn(request *http.Request) string {
	body, err := request.GetBody()
	if err != nil {
		return err.Error()
	}

	content, err := io.ReadAll(body)
	if err != nil {
		return err.Error()
	}

	object, _, err := codecs.UniversalDeserializer().Decode(content, nil, nil)
	if err != nil {
		return err.Error()
	}

	accessor, err := meta.Accessor(object)
	if err != nil {
		return err.Error()
	}

	return accessor.GetName()
}

var codecs = serializer.NewCodecFactory(setup.NewScheme())

// firstOfEach has the first write of each sort for each object answered so. It returns which those were.
func (w *world) firstOfEach(instead answer) (given func() []string) {
	var (
		mu   sync.Mutex
		seen []string
	)

	isFirst := func(request *http.Request) bool {
		_, write, _ := strings.Cut(request.URL.Path, "/namespaces/"+w.namespace+"/")
		if request.Method == http.MethodGet || write == "" || strings.Contains(write, "events") {
			return false
		}

		write = request.Method + " " + write

		if request.Method == http.MethodPost {
			write += "/" + nameIn(request)
		}

		mu.Lock()
		defer mu.Unlock()

		if slices.Contains(seen, write) {
			return false
		}

		seen = append(seen, write)

		return true
	}

	traffic.intercept(w.namespace, func(server http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if isFirst(request) {
				return instead(server).RoundTrip(request)
			}

			return server.RoundTrip(request)
		})
	})

	return func() []string {
		mu.Lock()
		defer mu.Unlock()

		return slices.Clone(seen)
	}
}

// Whatever the first of all writes of a sort is answered, and whether it was done or not: in the end a cluster has one set of secrets, each
// machine one config that is made of them, and a pool what its inputs are.
func TestAnswersToWrites(t *testing.T) {
	t.Parallel()

	tests := map[string]answer{
		"conflict":                 refusal(http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified", nil),
		"too many requests":        refusal(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "later", http.Header{"Retry-After": {"1"}}),
		"internal error":           refusal(http.StatusInternalServerError, metav1.StatusReasonInternalError, "no", nil),
		"unavailable":              refusal(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "no", nil),
		"forbidden":                refusal(http.StatusForbidden, metav1.StatusReasonForbidden, "not now", nil),
		"unauthorized":             refusal(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "who?", nil),
		"cut off before":           cut,
		"cut off after":            afterwards(cut),
		"timeout after":            afterwards(refusal(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "too slow", nil)),
		"internal error after":     afterwards(refusal(http.StatusInternalServerError, metav1.StatusReasonInternalError, "no", nil)),
		"too many requests, after": afterwards(refusal(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "later", http.Header{"Retry-After": {"1"}})),
	}

	for name, instead := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)

			given := w.firstOfEach(instead)

			w.cluster()
			w.create(clusterConfigYAML)
			w.machine("w-1", worker, "")
			w.machine("cp-1", controlPlane, "")
			w.create(poolYAML)
			w.ownedConfig("pool", "MachinePool", &clusterv1.MachinePool{})

			for _, machine := range []string{"w-1", "cp-1", "pool"} {
				w.fits(machine)
			}

			w.create(patchYAML)
			w.Eventually(func() string {
				secret := &corev1.Secret{}
				w.get(secret, "pool")

				return string(secret.Data["value"])
			}).Should(ContainSubstring("vm.max_map_count"))

			for _, machine := range []string{"w-1", "cp-1", "pool"} {
				w.fits(machine)
			}

			w.agree()

			for _, write := range []string{
				"POST secrets/c-talos", "POST secrets/c-sa", "POST secrets/c-talosconfig", "POST secrets/w-1", "POST secrets/pool",
				"PATCH secrets/pool", "PATCH talosconfigs/w-1/status",
			} {
				w.Expect(given()).To(ContainElement(write))
			}
		})
	}
}

// fits waits until the TalosConfig is ready, and checks that its Secret has a config of the cluster's secrets, and the status says which.
func (w *world) fits(name string) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		secret := w.ready(name)
		sum := sha256.Sum256(secret.Data["value"])
		g.Expect(secret.Annotations).To(HaveKeyWithValue("bootstrap.ichor.maesh.dev/rendered-hash", hex.EncodeToString(sum[:])))
		g.Expect(w.config(name).Status.RenderedHash).To(Equal(hex.EncodeToString(sum[:])))
		g.Expect(string(secret.Data["value"])).To(ContainSubstring(w.opened().TrustdInfo.Token))
	}).Should(Succeed())
}

// What goes into a pool's config may change while it is rendered: the Secret has the change in the end, and the status says of which config.
func TestPoolInputsChangeDuringARender(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)
	w.create(unreported(tunnelYAML))
	w.secret("wireguard", map[string]string{"private": wireguardKey})
	w.pool()

	change := func(name string) {
		config := &bootstrapv1.TalosClusterConfig{}
		w.change(config, "c", func() { config.Spec.CertSANs = append(config.Spec.CertSANs, name) })
	}

	during := false

	traffic.before(w.sent("GET", "wireguard"), func() {
		during = true

		change("during.example.com")
	})
	change("before.example.com")

	w.Eventually(func() string {
		secret := &corev1.Secret{}
		w.get(secret, "pool")

		return string(secret.Data["value"])
	}).Should(And(ContainSubstring("before.example.com"), ContainSubstring("during.example.com")))
	w.fits("pool")
	w.Expect(during).To(BeTrue())
}
