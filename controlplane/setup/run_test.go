// SPDX-License-Identifier: Apache-2.0

package setup_test

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/maesh-dev/ichor/controlplane/setup"
)

func TestRunRefusesFlags(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"unknown flag":             {[]string{"--concurency=3"}, "unknown flag: --concurency"},
		"no concurrency":           {[]string{"--concurrency=0"}, "--concurrency is 0: set at least 1"},
		"verbose":                  {[]string{"--v=8"}, "--v is 8: set at most 7"},
		"impatient":                {[]string{"--remote-conditions-grace-period=1m"}, "--remote-conditions-grace-period is 1m0s: set at least 2m0s"},
		"no health":                {[]string{"--health-interval=0s"}, "--health-interval is 0s: set at least 1s"},
		"no polls":                 {[]string{"--poll-interval=10ms"}, "--poll-interval is 10ms: set at least 1s"},
		"no connections":           {[]string{"--clustercache-concurrency=0"}, "--clustercache-concurrency is 0: set at least 1"},
		"no requests":              {[]string{"--clustercache-client-qps=0"}, "--clustercache-client-qps is 0: set more than 0"},
		"no requests in one burst": {[]string{"--clustercache-client-burst=0"}, "--clustercache-client-burst is 0: set at least 1"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := setup.Run(t.Context(), "test", test.args, &bytes.Buffer{})
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
}

// contract: the manager has the flags --namespace and --watch-filter.
func TestRunHelp(t *testing.T) {
	g := NewWithT(t)
	out := &bytes.Buffer{}

	g.Expect(setup.Run(t.Context(), "test", []string{"--help"}, out)).To(Succeed())

	for _, flag := range []string{
		"--namespace", "--watch-filter", "--concurrency", "--leader-elect", "--health-addr", "--diagnostics-address", "--webhook-port", "--webhook-cert-dir", "--tls-min-version", "--logging-format",
		"--kubeconfig", "--feature-gates", "--kube-api-qps", "--sync-period", "--clustercache-concurrency", "--clustercache-client-qps", "--clustercache-client-burst",
		"--remote-conditions-grace-period", "--health-interval", "--poll-interval",
	} {
		g.Expect(out.String()).To(ContainSubstring(flag+" "), flag)
	}

	g.Expect(out.String()).To(ContainSubstring("Number of TalosControlPlanes"))
}
