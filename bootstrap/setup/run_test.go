// SPDX-License-Identifier: Apache-2.0

package setup_test

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/maesh-dev/ichor/bootstrap/setup"
)

func TestRunRefusesFlags(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"unknown flag":         {[]string{"--concurency=3"}, "unknown flag: --concurency"},
		"argument":             {[]string{"start"}, `unexpected argument "start"`},
		"no concurrency":       {[]string{"--concurrency=0"}, "--concurrency is 0: set at least 1"},
		"no sync":              {[]string{"--sync-period=0s"}, "--sync-period is 0s: set at least 1s"},
		"no webhook port":      {[]string{"--webhook-port=0"}, "--webhook-port is 0: set a port from 1 to 65535"},
		"no burst":             {[]string{"--kube-api-burst=0"}, "--kube-api-burst is 0: set at least 1"},
		"lease shorter":        {[]string{"--leader-elect", "--leader-elect-lease-duration=5s"}, "--leader-elect-lease-duration (5s) must be longer"},
		"verbose":              {[]string{"--v=8"}, "--v is 8: set at most 7, since from 8 on the log has the requests"},
		"verbose in a file":    {[]string{"--vmodule=main=7,request=9"}, "--vmodule=request is 9: set at most 7"},
		"unknown feature gate": {[]string{"--feature-gates=Nonsense=true"}, "unrecognized feature gate: Nonsense"},
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
		"--kubeconfig", "--feature-gates", "--kube-api-qps", "--sync-period",
	} {
		g.Expect(out.String()).To(ContainSubstring(flag+" "), flag)
	}
}
