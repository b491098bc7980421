// SPDX-License-Identifier: Apache-2.0

package harness_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/maesh-dev/ichor/test/harness"
)

// childDirectory makes this test program, started by itself, a process that holds a management cluster until it is killed.
const childDirectory = "ICHOR_HARNESS_TEST_CHILD_DIRECTORY"

const childReady = "management cluster is ready"

func TestMain(m *testing.M) {
	dir := os.Getenv(childDirectory)
	if dir == "" {
		os.Exit(m.Run())
	}
	if _, err := harness.StartManagementCluster(context.Background(), harness.Options{Dir: dir}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, childReady)
	select {}
}

func TestKilledParentLeavesNothing(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "management")
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childDirectory+"="+dir)
	child.Stderr = os.Stderr
	output, err := child.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(child.Start()).To(Succeed())

	lines := bufio.NewScanner(output)
	g.Expect(lines.Scan()).To(BeTrue(), "the child said nothing")
	g.Expect(lines.Text()).To(Equal(childReady))
	g.Expect(processesOf(dir)).To(ConsistOf("etcd", "kube-apiserver"))

	g.Expect(child.Process.Kill()).To(Succeed())
	g.Expect(child.Wait()).To(MatchError(ContainSubstring("killed")))

	g.Eventually(func() ([]string, error) { return processesOf(dir) }, patience, interval).Should(BeEmpty())
}
