// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/cli"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/version"
)

// sample is a file of the corpus; see testdata/patches/README.md.
type sample struct {
	file                  string
	about                 string
	contract, machineType string
	want                  []string
}

func readSample(t *testing.T, file string) sample {
	t.Helper()

	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	s := sample{file: file}

	for line := range strings.Lines(strings.TrimPrefix(string(data), "\xef\xbb\xbf")) {
		text, comment := strings.CutPrefix(strings.TrimSpace(line), "#")
		if !comment {
			break
		}

		key, value, _ := strings.Cut(strings.TrimSpace(text), ": ")

		switch value = strings.TrimSpace(value); key {
		case "contract":
			s.contract = value
		case "machine-type":
			s.machineType = value
		case "want":
			s.want = append(s.want, value)
		default:
			if s.about == "" {
				s.about = text
			}
		}
	}

	if s.about == "" {
		t.Error("the first line must say what the file is for")
	}

	if _, err := version.ParseContract(s.contract); err != nil {
		t.Errorf("contract: %v", err)
	}

	return s
}

// call runs the command line.
func call(stdin string, args ...string) (code int, out, told string) {
	var stdout, stderr bytes.Buffer

	code = cli.Main(append([]string{"clusterctl-ichor"}, args...), "test", genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &stdout, ErrOut: &stderr})

	return code, stdout.String(), stderr.String()
}

func (s sample) convert(secrets string) (code int, out, told string) {
	args := []string{"convert", "-f", s.file, "--contract", s.contract, "--secrets-file", secrets, "--name", "sample"}
	if s.machineType != "" {
		args = append(args, "--machine-type", s.machineType)
	}

	return call("", args...)
}

// TestCorpus: what users of Talos have converts, renders and validates, and what is wrong is refused in words that help.
func TestCorpus(t *testing.T) {
	t.Parallel()

	for sort, check := range map[string]func(*testing.T, sample){"good": checkGood, "wrong": checkWrong} {
		files := glob(t, sort)
		if len(files) == 0 {
			t.Errorf("there are no files in %s", sort)
		}

		for _, file := range files {
			t.Run(sort+"/"+strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
				t.Parallel()
				check(t, readSample(t, file))
			})
		}
	}
}

func checkGood(t *testing.T, s sample) {
	t.Helper()

	if len(s.want) > 0 {
		t.Error("want is for what is wrong")
	}

	secrets := filepath.Join(t.TempDir(), "secret.yaml")

	code, out, told := s.convert(secrets)
	if code != cli.ExitFine {
		t.Fatalf("got exit status %d:\n%s", code, told)
	}

	if strings.Contains(out+told, planted) {
		t.Errorf("a secret is shown:\n%s%s", told, out)
	}

	secret, err := os.ReadFile(secrets)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}

	if code, out, told := call(s.cluster(t, out, string(secret)), "validate", "-f", "-"); code != cli.ExitFine {
		t.Errorf("validate: got exit status %d:\n%s%s", code, told, out)
	}
}

// cluster is a cluster with a machine of the sample's type, the patch and its Secret.
func (s sample) cluster(t *testing.T, converted, secret string) string {
	t.Helper()

	var patch bootstrapv1.TalosConfigPatch
	if err := yaml.UnmarshalStrict([]byte(converted), &patch); err != nil {
		t.Fatal(err)
	}

	patch.Spec.ClusterName = "sample"

	contract, err := version.ParseContract(s.contract)
	if err != nil {
		t.Fatal(err)
	}

	kubernetes, err := version.NewestKubernetes(contract.Talos())
	if err != nil {
		t.Fatal(err)
	}

	if pinned, ok := machineconfig.ParsePatch(&patch).Kubernetes(); ok {
		kubernetes = pinned
	}

	labels, install := "{}", ""
	if s.machineType == "controlplane" {
		labels = `{cluster.x-k8s.io/control-plane: ""}`
	}

	if strings.Contains(converted, "unattendedInstallConfig:") {
		install = fmt.Sprintf(", install: {disk: /dev/sda, image: 'registry.example.com/installer:%s'}", contract.Talos())
	}

	return fmt.Sprintf(`apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: sample}
spec: {controlPlaneEndpoint: {host: 192.0.2.10, port: 6443}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {name: machine-1, labels: %s}
spec:
  clusterName: sample
  version: %s
  bootstrap: {configRef: {apiGroup: bootstrap.ichor.maesh.dev, kind: TalosConfig, name: machine-1}}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: Metal3Machine, name: machine-1}
---
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosConfig
metadata: {name: machine-1}
spec: {configContract: %s%s}
---
%s---
%s`, labels, kubernetes, s.contract, install, encode(t, patch), secret)
}

func checkWrong(t *testing.T, s sample) {
	t.Helper()

	secrets := filepath.Join(t.TempDir(), "secret.yaml")

	code, out, told := s.convert(secrets)
	if code != cli.ExitFindings && code != cli.ExitUsage {
		t.Errorf("got exit status %d", code)
	}

	if out != "" {
		t.Errorf("something is printed:\n%s", out)
	}

	if _, err := os.Stat(secrets); !os.IsNotExist(err) {
		t.Error("a Secret is written")
	}

	if strings.Contains(told, planted) {
		t.Errorf("a secret is shown:\n%s", told)
	}

	if len(s.want) == 0 {
		t.Error("want is missing")
	}

	// The name of a file says what is wrong with it, and must not be taken for the message.
	told = strings.ReplaceAll(told, s.file, "F")

	for _, want := range s.want {
		if !strings.Contains(told, want) {
			t.Errorf("got\n%s\nwant %q", told, want)
		}
	}
}
