// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/component-base/logs"
	"k8s.io/klog/v2"
)

// The endpoint that sets the log level of a manager that runs has the limit of the flag.
func TestVerbosityEndpoint(t *testing.T) {
	g := NewWithT(t)

	defer func() {
		_, err := logs.GlogSetter("0")
		g.Expect(err).NotTo(HaveOccurred())
	}()

	configured := NewOptions()
	configured.Diagnostics.TLSMinVersion = "VersionTLS12"
	options, err := Manager{Name: "test"}.options(configured)
	g.Expect(err).NotTo(HaveOccurred())

	put := func(level string) *httptest.ResponseRecorder {
		recorder := httptest.NewRecorder()
		options.Metrics.ExtraHandlers["/debug/flags/v"].ServeHTTP(recorder,
			httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/debug/flags/v", strings.NewReader(level)))

		return recorder
	}

	g.Expect(put("7").Code).To(Equal(http.StatusOK))
	g.Expect(klog.V(7).Enabled()).To(BeTrue())

	for _, level := range []string{"8", "10", "-1", "x"} {
		refused := put(level)
		g.Expect(refused.Code).To(Equal(http.StatusBadRequest), level)
		g.Expect(klog.V(8).Enabled()).To(BeFalse(), level)
	}

	g.Expect(put("8").Body.String()).To(ContainSubstring("set at most 7"))
}
