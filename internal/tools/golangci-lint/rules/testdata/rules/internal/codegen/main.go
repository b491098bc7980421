// SPDX-License-Identifier: Apache-2.0

// Package main generates, and must run when what it generates does not compile.
package main

import (
	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1" // want "depguard: .*imports none of the packages it generates for"
	"github.com/maesh-dev/ichor/internal/codegen/load"
)

func main() {
	load.Load(machineconfigv1alpha1.Mirror{}.Enabled)
}
