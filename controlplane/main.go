// SPDX-License-Identifier: Apache-2.0

// The manager of the control-plane provider: it makes the control-plane Machines of clusters and operates their etcd.
package main

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/maesh-dev/ichor/controlplane/setup"
)

// version is set by the linker.
var version = "unknown"

func main() {
	if err := setup.Run(ctrl.SetupSignalHandler(), version, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}
