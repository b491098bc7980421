// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// job is one build that runs.
type job struct {
	ctx       context.Context //nolint:containedctx // A job lives for one call and is passed to the catalog's functions.
	tool      tool
	identity  identity
	needs     map[string]string
	moduleDir string
	output    string
}

// goBuildEnvironment replaces the caller's settings that would change what is built, or whether it can be.
var goBuildEnvironment = []string{"CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GO111MODULE=on", "GOOS=", "GOARCH=", "GOEXPERIMENT="}

func (j job) run() error {
	if j.tool.make != nil {
		return j.tool.make(j)
	}
	args := append([]string{"build", "-modfile=" + j.tool.goModFile(), "-o", j.output},
		buildFlags(j.tool, j.identity.version)...)
	_, err := j.command("go", append(args, j.tool.mainPackage)...)
	return err
}

// buildFlags drop paths, symbols and the state of the repository, none of which a test tool needs, so that the same
// sources give the same file anywhere.
func buildFlags(t tool, version string) []string {
	ldflags := []string{"-s", "-w"}
	major, minor := majorMinor(version)
	for _, p := range t.versionPackages {
		ldflags = append(ldflags,
			"-X", p+".gitVersion="+version,
			"-X", p+".gitMajor="+major,
			"-X", p+".gitMinor="+minor,
			"-X", p+".gitTreeState=clean",
		)
	}
	return []string{"-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags=" + strings.Join(ldflags, " ")}
}

func majorMinor(version string) (major, minor string) {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 3 {
		return "", ""
	}
	return parts[0], parts[1]
}

// kustomizeModule renders a kustomization that lies in a module's sources.
func kustomizeModule(module, directory string) func(job) error {
	return func(j job) error {
		if _, err := j.command("go", "mod", "download", module); err != nil {
			return err
		}
		moduleDir, err := j.command("go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module)
		if err != nil {
			return err
		}
		kustomization := filepath.Join(strings.TrimSpace(string(moduleDir)), filepath.FromSlash(directory))
		rendered, err := j.command(j.needs[Kubectl], "kustomize", kustomization)
		if err != nil {
			return err
		}
		return os.WriteFile(j.output, rendered, 0o644)
	}
}

// command runs a program in the nested module and returns its output. What it wrote to its error output is in the error.
func (j job) command(name string, args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(j.ctx, name, args...)
	cmd.Dir = j.moduleDir
	cmd.Env = append(os.Environ(), goBuildEnvironment...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// An interrupted go command ends its compilers; a killed one would leave them running.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	if err := cmd.Run(); err != nil {
		if j.ctx.Err() != nil {
			return nil, j.ctx.Err()
		}
		return nil, fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), args[0], err, lastLines(stderr.String(), 30))
	}
	return stdout.Bytes(), nil
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
