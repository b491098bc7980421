// SPDX-License-Identifier: Apache-2.0

// Command golangci-lint is golangci-lint with kube-api-linter compiled in. golangci-lint's own
// way to add a linter (its custom command) clones a repository and builds that; this program gets
// both from go.mod, with checksums, like every other dependency.
package main

import (
	"fmt"
	"os"

	"github.com/golangci/golangci-lint/v2/pkg/commands"
	"github.com/golangci/golangci-lint/v2/pkg/exitcodes"
	// Registers the linter kubeapilinter.
	_ "sigs.k8s.io/kube-api-linter"
)

func main() {
	if err := commands.Execute(commands.BuildInfo{}); err != nil {
		fmt.Fprintln(os.Stderr, "golangci-lint:", err)
		os.Exit(exitcodes.Failure)
	}
}
