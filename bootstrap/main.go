// SPDX-License-Identifier: Apache-2.0

// The manager of the bootstrap provider: it makes Talos machine configs for Cluster API's Machines.
package main

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/maesh-dev/ichor/bootstrap/setup"
)

// version is set by the linker.
var version = "unknown"

func main() {
	if err := setup.Run(ctrl.SetupSignalHandler(), version, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}
