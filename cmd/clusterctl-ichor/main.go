// SPDX-License-Identifier: Apache-2.0

// Command clusterctl-ichor is the plugin of clusterctl, and of kubectl under the name kubectl-ichor, that shows and checks the
// machine configs that Ichor makes. See package internal/cli.
package main

import (
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/maesh-dev/ichor/internal/cli"
)

// version is set by the build.
var version string

func main() {
	os.Exit(cli.Main(os.Args, version, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
}
