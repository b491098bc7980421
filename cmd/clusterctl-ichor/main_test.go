// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/maesh-dev/ichor/internal/cli"
)

var update = flag.Bool("update", false, "write the golden files anew")

// clusterFiles are those of the fixture cluster.
const clusterFiles = "testdata/cluster"

// convertFiles are Talos documents to be converted.
const convertFiles = "testdata/convert"

// outcome is what a user sees of a command.
type outcome struct {
	code        int
	out, errOut string
}

// run runs the program in this process.
func run(stdin string, args ...string) outcome {
	var out, errOut bytes.Buffer

	code := cli.Main(append([]string{"clusterctl-ichor"}, args...), "v0.0.0-test",
		genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &errOut})

	return outcome{code, out.String(), errOut.String()}
}

// String is the outcome as a golden file has it.
func (o outcome) String() string {
	var b strings.Builder

	fmt.Fprintf(&b, "exit status %d\n", o.code)

	if o.errOut != "" {
		fmt.Fprintf(&b, "\n--- errors and notes\n%s", o.errOut)
	}

	if o.out != "" {
		fmt.Fprintf(&b, "\n--- output\n%s", o.out)
	}

	return b.String()
}

// expectGolden compares with a golden file, or writes it with -update.
func expectGolden(t *testing.T, name, got string) {
	t.Helper()
	g := NewWithT(t)

	path := filepath.Join("testdata", "golden", name)

	if *update {
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o750)).To(Succeed())
		g.Expect(os.WriteFile(path, []byte(got), 0o600)).To(Succeed())
	}

	want, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(Equal(string(want)), "run the test with -update if the difference is meant")
}

// commands are the calls whose whole outcome is a golden file.
var commands = map[string][]string{
	"render-all":             {"render", "-f", clusterFiles},
	"render-worker":          {"render", "-f", clusterFiles, "--machine", "w-1"},
	"render-worker-json":     {"render", "-f", clusterFiles, "--machine", "Machine/w-1", "-o", "json"},
	"render-deployment-yaml": {"render", "-f", clusterFiles, "--machine", "gpu", "-o", "yaml"},
	"render-throwaway": {
		"render", "-f", clusterFiles + "/cluster.yaml", "-f", clusterFiles + "/patches.yaml", "-f", "testdata/talos-plain.yaml", "--machine", "fleet/cp-1",
	},
	"render-unknown-machine":  {"render", "-f", clusterFiles, "--machine", "w-2"},
	"render-without-secrets":  {"render", "-f", clusterFiles + "/cluster.yaml", "-f", clusterFiles + "/patches.yaml", "-f", clusterFiles + "/talos.yaml"},
	"render-missing-config":   {"render", "-f", "testdata/missing.yaml", "--machine", "w-2"},
	"render-beside-missing":   {"render", "-f", "testdata/missing.yaml", "--machine", "w-1"},
	"explain-missing-config":  {"explain", "-f", "testdata/missing.yaml", "--machine", "w-2"},
	"render-without-machines": {"render", "-f", clusterFiles + "/talos.yaml"},

	"explain-all":             {"explain", "-f", clusterFiles, "--machine", "w-1"},
	"explain-place":           {"explain", "-f", clusterFiles, "--machine", "w-1", "UserVolumeConfig/longhorn:/provisioning/maxSize"},
	"explain-legacy":          {"explain", "-f", clusterFiles, "--machine", "gpu", "Config:/machine/sysctls"},
	"explain-bare-pointer":    {"explain", "-f", clusterFiles, "--machine", "gpu", "/machine/sysctls"},
	"explain-kind":            {"explain", "-f", clusterFiles, "--machine", "w-1", "RegistryAuthConfig"},
	"explain-named-with-dots": {"explain", "-f", clusterFiles, "--machine", "w-1", "RegistryMirrorConfig/docker.io:/endpoints"},
	"explain-json":            {"explain", "-f", clusterFiles, "--machine", "w-1", "SysctlConfig", "-o", "json"},
	"explain-yaml":            {"explain", "-f", clusterFiles, "--machine", "w-1", "RegistryAuthConfig/ghcr.io", "-o", "yaml"},
	"explain-nothing-there":   {"explain", "-f", clusterFiles, "--machine", "w-1", "UserVolumeConfig/ceph"},
	"explain-wrong-place":     {"explain", "-f", clusterFiles, "--machine", "w-1", "RegistryMirrorConfig/docker.io:/endpoint"},
	"explain-misspelled-kind": {"explain", "-f", clusterFiles, "--machine", "w-1", "SysctlConfg"},
	"explain-no-machine":      {"explain", "-f", clusterFiles},
	"explain-path-with-blank": {"explain", "-f", clusterFiles, "--machine", "w-1", "max size"},

	"validate-fine":            {"validate", "-f", clusterFiles, "-v"},
	"validate-fine-json":       {"validate", "-f", clusterFiles, "-o", "json"},
	"validate-warnings":        {"validate", "-f", "testdata/warnings.yaml"},
	"validate-warnings-strict": {"validate", "-f", "testdata/warnings.yaml", "--strict"},
	"validate-warnings-json":   {"validate", "-f", "testdata/warnings.yaml", "-o", "json"},
	"validate-errors-yaml":     {"validate", "-f", clusterFiles, "-f", "testdata/broken.yaml", "-o", "yaml"},
	"validate-without-secrets": {"validate", "-f", clusterFiles + "/cluster.yaml", "-f", clusterFiles + "/patches.yaml", "-f", clusterFiles + "/talos.yaml"},
	"validate-shell-glob":      {"validate", "-f", clusterFiles + "/cluster.yaml", clusterFiles + "/patches.yaml", clusterFiles + "/talos.yaml", clusterFiles + "/secrets.yaml"},
	"validate-control-plane":   {"validate", "-f", "testdata/controlplane.yaml"},
	"validate-one-patch":       {"validate", "-f", clusterFiles + "/patches.yaml"},
	"explain-control-plane":    {"explain", "-f", "testdata/controlplane.yaml", "--machine", "cp", "UnattendedInstallConfig"},
	"validate-absent-file":     {"validate", "-f", "testdata/absent.yaml"},
	"validate-no-file":         {"validate"},
	"validate-bad-output":      {"validate", "-f", clusterFiles, "-o", "xml"},

	"patch":               {"patch", "-f", "testdata/patch/base.yaml", "-p", "testdata/patch/volumes.yaml", "-p", "@testdata/patch/node.yaml"},
	"patch-partial-base":  {"patch", "-f", "testdata/patch/volumes.yaml", "-p", "testdata/patch/node.yaml"},
	"patch-inline":        {"patch", "-f", "testdata/patch/base.yaml", "-p", `[{"op": "remove", "path": "/machine"}]`},
	"patch-without-patch": {"patch", "-f", "testdata/patch/base.yaml"},

	"convert":                 {"convert", "-f", convertFiles + "/volume.yaml"},
	"convert-json":            {"convert", "-f", convertFiles + "/volume.yaml", "-o", "json", "--name", "nvme", "-n", "fleet", "--layer", "pool"},
	"convert-legacy":          {"convert", "-f", "@" + convertFiles + "/legacy.yaml", "--contract", "v1.13", "--machine-type", "worker"},
	"convert-legacy-on-new":   {"convert", "-f", convertFiles + "/legacy.yaml", "--contract", "v1.14"},
	"convert-several":         {"convert", "-f", convertFiles + "/volume.yaml", convertFiles + "/controlplane.yaml", "--machine-type", "controlplane", "--layer", "Cluster"},
	"convert-control-plane":   {"convert", "-f", convertFiles + "/controlplane.yaml"},
	"convert-too-new":         {"convert", "-f", convertFiles + "/controlplane.yaml", "--contract", "v1.12", "--machine-type", "controlplane"},
	"convert-wrong":           {"convert", "-f", convertFiles + "/wrong.yaml"},
	"convert-unfit":           {"convert", "-f", convertFiles + "/unfit.yaml"},
	"convert-unfit-no-render": {"convert", "-f", convertFiles + "/unfit.yaml", "--no-render"},
	"convert-refused":         {"convert", "-f", convertFiles + "/refused.yaml"},
	"convert-absent-file":     {"convert", "-f", "testdata/absent.yaml"},
	"convert-no-file":         {"convert"},
	"convert-no-name":         {"convert", "-f", "-"},
	"convert-bad-name":        {"convert", "-f", convertFiles + "/volume.yaml", "--name", "My Patch"},
	"convert-bad-layer":       {"convert", "-f", convertFiles + "/volume.yaml", "--layer", "Node"},
	"convert-bad-contract":    {"convert", "-f", convertFiles + "/volume.yaml", "--contract", "v1.9"},
	"convert-bad-type":        {"convert", "-f", convertFiles + "/volume.yaml", "--machine-type", "control-plane"},
	"convert-role-no-type":    {"convert", "-f", convertFiles + "/volume.yaml", "--layer", "Role"},
	"convert-secrets-to-tty":  {"convert", "-f", convertFiles + "/wireguard.yaml", "--secrets-file", "/dev/stdout"},
	"convert-inline":          {"convert", "-f", `[{"op": "remove", "path": "/machine"}]`},

	"help":            {"--help"},
	"help-convert":    {"convert", "--help"},
	"help-render":     {"render", "--help"},
	"help-explain":    {"explain", "--help"},
	"help-validate":   {"validate", "--help"},
	"help-patch":      {"patch", "--help"},
	"unknown-command": {"rendr"},
	"unknown-flag":    {"render", "--all"},
}

func TestCommands(t *testing.T) {
	t.Parallel()

	for name, args := range commands {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			first := run("", args...)
			NewWithT(t).Expect(run("", args...)).To(Equal(first), "the same call must have the same outcome")
			expectGolden(t, name+".txt", first.String())
		})
	}
}

func TestStandardInput(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)

	data, err := os.ReadFile("testdata/patch/volumes.yaml")
	g.Expect(err).NotTo(HaveOccurred())

	fromFile := run("", "patch", "-f", "testdata/patch/base.yaml", "-p", "testdata/patch/volumes.yaml")
	g.Expect(fromFile.code).To(BeZero())
	g.Expect(run(string(data), "patch", "-f", "testdata/patch/base.yaml", "-p", "-")).To(Equal(fromFile))

	twice := run(string(data), "patch", "-f", "-", "-p", "-")
	g.Expect(twice.code).To(Equal(cli.ExitUsage))
	g.Expect(twice.errOut).To(ContainSubstring("more than once"))

	talos, err := os.ReadFile(clusterFiles + "/talos.yaml")
	g.Expect(err).NotTo(HaveOccurred())

	rendered := run(string(talos), "render", "-f", "-", "-f", clusterFiles+"/cluster.yaml", "-f", clusterFiles+"/patches.yaml", "-f", clusterFiles+"/secrets.yaml")
	g.Expect(rendered).To(Equal(run("", "render", "-f", clusterFiles)))
}

func TestVersion(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)

	text := run("", "version")
	g.Expect(text.code).To(BeZero())
	g.Expect(text.out).To(MatchRegexp(`^clusterctl-ichor v0\.0\.0-test\nTalos machinery v1\.\d+\.\d+\nconfig contracts v1\.12 to v1\.\d+\nCluster API contract v1beta2\ngo1`))

	var result cli.VersionResult
	g.Expect(decodeJSON(run("", "version", "-o", "json").out, &result)).To(Succeed())
	g.Expect(result.Version).To(Equal("v0.0.0-test"))
	g.Expect(result.Machinery).To(HavePrefix("v1."))
	g.Expect(result.ConfigContracts).To(HaveLen(3))
	g.Expect(result.ClusterAPIContract).To(Equal("v1beta2"))
}

func TestCompletion(t *testing.T) {
	t.Parallel()

	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)

			got := run("", "completion", shell)
			g.Expect(got.code).To(BeZero())
			g.Expect(got.out).To(ContainSubstring("clusterctl-ichor"))
		})
	}

	formats := run("", "__complete", "render", "-o", "")
	NewWithT(t).Expect(formats.out).To(HavePrefix("text\nyaml\njson\n"))
}

func TestNameAsPlugin(t *testing.T) {
	t.Parallel()

	for program, want := range map[string]string{
		"/usr/local/bin/clusterctl-ichor": "clusterctl ichor", "kubectl-ichor": "kubectl ichor", "kubectl-ichor.exe": "kubectl ichor", "other": "clusterctl ichor",
	} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)

			var out, errOut bytes.Buffer
			g.Expect(cli.Main([]string{program, "--help"}, "", genericiooptions.IOStreams{Out: &out, ErrOut: &errOut})).To(BeZero())
			g.Expect(out.String()).To(ContainSubstring("Usage:\n  " + want + " [flags]"))
		})
	}
}
