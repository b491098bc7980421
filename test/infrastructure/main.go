// SPDX-License-Identifier: Apache-2.0

// The manager of the infrastructure provider sim: it makes simulated machines for Cluster API's Machines.
package main

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/maesh-dev/ichor/test/infrastructure/setup"
)

func main() {
	if err := setup.Run(ctrl.SetupSignalHandler(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}
