// SPDX-License-Identifier: Apache-2.0

package compat_test

import (
	"os/exec"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/test/tools"
)

var helpFlag = regexp.MustCompile(`(?m)^\s+--([a-z0-9-]+)`)

// TestFlagsOfEtcd compares the flags that users may set with those of etcd itself, version 3.6: what is refused for being none is none, and what
// passes is one.
func TestFlagsOfEtcd(t *testing.T) {
	t.Parallel()

	etcd, err := tools.Path(t.Context(), tools.Etcd)
	if err != nil {
		t.Fatal(err)
	}

	help, err := exec.CommandContext(t.Context(), etcd, "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, help)
	}

	var flags []string
	for _, match := range helpFlag.FindAllStringSubmatch(string(help), -1) {
		flags = append(flags, match[1])
	}

	if len(flags) < 100 {
		t.Fatalf("etcd tells of %d flags:\n%s", len(flags), help)
	}

	known := machineconfig.EtcdFlags()

	for _, flag := range flags {
		if !slices.Contains(known, flag) {
			t.Errorf("--%s is a flag of etcd, and not known here", flag)
		}
	}

	for _, flag := range known {
		if slices.Contains(flags, flag) {
			continue
		}

		// The help leaves some out; the program says what is none.
		out, _ := exec.CommandContext(t.Context(), etcd, "--"+flag+"=%", "--version").CombinedOutput()
		if regexp.MustCompile(`flag provided but not defined: -` + regexp.QuoteMeta(flag) + `\b`).Match(out) {
			t.Errorf("--%s is known here, and no flag of etcd", flag)
		}
	}
}

// TestValuesOfEtcdFlags gives each flag a value that it does not take: etcd refuses it in the words of its flags.
func TestValuesOfEtcdFlags(t *testing.T) {
	t.Parallel()

	etcd, err := tools.Path(t.Context(), tools.Etcd)
	if err != nil {
		t.Fatal(err)
	}

	for flag, refuses := range machineconfig.EtcdRefuses("%") {
		out, _ := exec.CommandContext(t.Context(), etcd, "--"+flag+"=%", "--version").CombinedOutput()

		// What is looked at later than the flags themselves is not seen here.
		if regexp.MustCompile(`invalid (boolean )?value "%" for flag -`+regexp.QuoteMeta(flag)+`:`).Match(out) && !refuses {
			t.Errorf("--%s: etcd refuses a value that passes here:\n%.200s", flag, out)
		}
	}
}

// TestOriginsOfEtcd gives origins of requests to etcd, and compares what it refuses with what is refused here.
func TestOriginsOfEtcd(t *testing.T) {
	t.Parallel()

	etcd, err := tools.Path(t.Context(), tools.Etcd)
	if err != nil {
		t.Fatal(err)
	}

	refused := 0

	for _, origins := range []string{
		"*", "https://ui.example.com:443", "http://10.0.0.1:8080,https://[2001:db8::1]:443", "unix:///run/ui.sock",
		"", "%", "ui.example.com:443", "https://ui.example.com", "https://ui.example.com:443/", "*,https://ui.example.com:443", "ftp://ui.example.com:21",
	} {
		out, _ := exec.CommandContext(t.Context(), etcd, "--cors="+origins, "--version").CombinedOutput()
		refuses := regexp.MustCompile(`invalid value "[^"]*" for flag -cors:`).Match(out)

		if refuses != machineconfig.EtcdRefuses(origins)["cors"] {
			t.Errorf("%q: etcd refuses it: %t:\n%.200s", origins, refuses, out)
		}

		if refuses {
			refused++
		}
	}

	if refused != 7 {
		t.Errorf("etcd refuses %d of the origins, want 7", refused)
	}
}

// TestFlagsOfKubernetes compares the flags that are known of programs of Kubernetes with those that the programs tell of.
func TestFlagsOfKubernetes(t *testing.T) {
	t.Parallel()

	apiServer, controllerManager := machineconfig.KubernetesFlags()

	for name, known := range map[string][]string{tools.KubeAPIServer: apiServer, tools.KubeControllerManager: controllerManager} {
		program, err := tools.Path(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}

		help, err := exec.CommandContext(t.Context(), program, "--help").CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v:\n%.500s", name, err, help)
		}

		var flags []string
		for _, match := range regexp.MustCompile(`(?m)^ +(?:-[a-z], )?--([a-z0-9-]+)`).FindAllStringSubmatch(string(help), -1) {
			flags = append(flags, match[1])
		}

		slices.Sort(flags)

		if diff := cmp.Diff(slices.Compact(flags), known); diff != "" {
			t.Errorf("%s: want -, known +:\n%s", name, diff)
		}
	}
}
