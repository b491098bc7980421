// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/maesh-dev/ichor/test/harness"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(harness.NewLogger(io.Discard))
	os.Exit(m.Run())
}
