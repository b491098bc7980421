// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// TestBinary builds the program and runs it. It is built with the flags of the tests, so that little is compiled anew.
func TestBinary(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()

	binary := filepath.Join(t.TempDir(), "kubectl-ichor")

	build := exec.CommandContext(ctx, "go", "build", "-ldflags", "-X main.version=v1.2.3", "-o", binary, ".")
	output, err := build.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(output))

	for name, tc := range map[string]struct {
		args []string
		code int
		out  string
		err  string
	}{
		"version":  {[]string{"version"}, 0, "clusterctl-ichor v1.2.3\n", ""},
		"fine":     {[]string{"validate", "-f", clusterFiles}, 0, "0 errors, 0 warnings; 3 machine configs valid\n", ""},
		"findings": {[]string{"validate", "-f", clusterFiles, "-f", "testdata/broken.yaml"}, 1, "exclude each other", ""},
		"usage":    {[]string{"render"}, 2, "", "kubectl ichor render --help"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			var out, errOut bytes.Buffer

			command := exec.CommandContext(ctx, binary, tc.args...)
			command.Stdout, command.Stderr = &out, &errOut

			code := 0

			var exit *exec.ExitError
			if err := command.Run(); errors.As(err, &exit) {
				code = exit.ExitCode()
			} else {
				g.Expect(err).NotTo(HaveOccurred())
			}

			g.Expect(code).To(Equal(tc.code), errOut.String())
			g.Expect(out.String()).To(ContainSubstring(tc.out))
			g.Expect(errOut.String()).To(ContainSubstring(tc.err))
		})
	}
}
