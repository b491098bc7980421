// SPDX-License-Identifier: Apache-2.0

package operations_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/test/harness"
)

// The ServiceAccount that the role of docs/observability.md is for.
const monitoring, prometheus = "monitoring", "prometheus"

// newScraper gives a ServiceAccount the right to read metrics with the role that the documentation has, and returns a token.
func newScraper(t *testing.T) string {
	t.Helper()

	g := NewWithT(t)
	g.Expect(client.IgnoreAlreadyExists(admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: monitoring}}))).To(Succeed())

	page, err := os.ReadFile(filepath.Join(root, "docs", "observability.md"))
	g.Expect(err).NotTo(HaveOccurred())

	_, after, found := strings.Cut(string(page), "```yaml\n")
	g.Expect(found).To(BeTrue())

	manifest, _, found := strings.Cut(after, "```\n")
	g.Expect(found).To(BeTrue())

	roles, err := harness.DecodeYAML([]byte(manifest))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cluster.Apply(t.Context(), roles...)).To(Succeed())

	return token(t, prometheus)
}

// token makes a ServiceAccount and a token for it.
func token(t *testing.T, name string) string {
	t.Helper()

	g := NewWithT(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: monitoring, Name: name}}
	g.Expect(client.IgnoreAlreadyExists(admin.Create(t.Context(), account))).To(Succeed())

	request, err := clientset(t).CoreV1().ServiceAccounts(monitoring).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	return request.Status.Token
}

type answer struct {
	Code int
	Body string
}

// get asks the diagnostics endpoint, or puts when there is a body.
func (m *manager) get(scheme, path string, header http.Header, body ...string) answer {
	m.t.Helper()

	g := NewWithT(m.t)
	method := http.MethodGet

	if len(body) > 0 {
		method = http.MethodPut
	}

	request, err := http.NewRequestWithContext(m.t.Context(), method, scheme+m.DiagnosticsAddress+path, strings.NewReader(strings.Join(body, "")))
	g.Expect(err).NotTo(HaveOccurred())

	request.Header = header

	// The manager makes a certificate of its own when it starts.
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}}

	response, err := (&http.Client{Transport: transport, Timeout: patience}).Do(request)
	g.Expect(err).NotTo(HaveOccurred())

	defer response.Body.Close() //nolint:errcheck // it has been read

	content, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())

	return answer{response.StatusCode, string(content)}
}

func bearer(token string) http.Header {
	if token == "" {
		return nil
	}

	return http.Header{"Authorization": {"Bearer " + token}}
}

func (m *manager) scrape(token string) string {
	m.t.Helper()

	got := m.get("https://", "/metrics", bearer(token))
	NewWithT(m.t).Expect(got.Code).To(Equal(http.StatusOK), got.Body)

	return got.Body
}

// valueOf is the value of a series in a scrape, -1 when there is none.
func valueOf(text, series string) float64 {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, series+" ")
		if !ok {
			continue
		}

		if value, err := strconv.ParseFloat(strings.TrimSpace(rest), 64); err == nil {
			return value
		}
	}

	return -1
}

// The endpoint knows who asks, and whether they may.
func checkDiagnostics(t *testing.T, m *manager, scraper string) {
	g := NewWithT(t)
	stranger := token(t, "stranger")

	for _, path := range []string{"/metrics", "/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/heap", "/debug/flags/v"} {
		g.Expect(m.get("https://", path, nil).Code).To(Equal(http.StatusUnauthorized), path)
		// controller-runtime does not tell a token that is none from an authentication that does not work.
		g.Expect(m.get("https://", path, bearer("nonsense")).Code).To(BeElementOf(http.StatusUnauthorized, http.StatusInternalServerError), path)
		g.Expect(m.get("https://", path, bearer(stranger)).Code).To(Equal(http.StatusForbidden), path)
	}

	// The documented role is for metrics alone.
	g.Expect(m.get("https://", "/metrics", bearer(scraper)).Code).To(Equal(http.StatusOK))
	g.Expect(m.get("https://", "/debug/pprof/", bearer(scraper)).Code).To(Equal(http.StatusForbidden))
	g.Expect(m.get("https://", "/debug/flags/v", bearer(scraper), "3").Code).To(Equal(http.StatusForbidden))

	admin := token(t, "debugger")
	roles, err := harness.DecodeYAML([]byte(debuggerYAML))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cluster.Apply(t.Context(), roles...)).To(Succeed())

	g.Eventually(func() int { return m.get("https://", "/debug/pprof/", bearer(admin)).Code }, patience, interval).Should(Equal(http.StatusOK))
	g.Expect(m.get("https://", "/debug/pprof/heap", bearer(admin)).Body).NotTo(BeEmpty())
	g.Expect(m.get("https://", "/debug/pprof/cmdline", bearer(admin)).Body).To(ContainSubstring("--diagnostics-address"))

	g.Expect(m.get("https://", "/debug/flags/v", bearer(admin), "3")).To(HaveField("Code", http.StatusOK))
	g.Expect(m.get("https://", "/debug/flags/v", bearer(admin), "8")).To(And(
		HaveField("Code", http.StatusBadRequest), HaveField("Body", ContainSubstring("set at most 7"))))
}

const debuggerYAML = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: debugger}
rules:
- {nonResourceURLs: ["/debug/pprof/*", "/debug/flags/v"], verbs: [get, put]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: debugger}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: debugger}
subjects: [{kind: ServiceAccount, name: debugger, namespace: monitoring}]
`

// Without protection there are metrics for everybody, over HTTP, and nothing else.
func TestInsecureDiagnostics(t *testing.T) {
	g := NewWithT(t)
	m := start(t, "insecure", managerUser, "--insecure-diagnostics", "--concurrency=3")

	g.Eventually(func() answer { return m.get("http://", "/metrics", nil) }, patience, interval).Should(And(
		HaveField("Code", http.StatusOK), HaveField("Body", ContainSubstring(`controller_runtime_max_concurrent_reconciles{controller="talosconfig"} 3`))))

	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/flags/v"} {
		g.Expect(m.get("http://", path, nil).Code).To(Equal(http.StatusNotFound), path)
	}

	g.Expect(m.Stop()).To(Succeed())
}
