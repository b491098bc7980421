// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/stage"
)

// patience bounds every wait for something that must happen.
const patience = 4 * time.Minute

var long = flag.Bool("long", false, "run the scenarios that take longer, too")

// shared is the stage of all scenarios.
var shared *stage.Stage

func TestMain(m *testing.M) {
	flag.Parse()

	logs, err := os.CreateTemp("", "ichor-controlplane-*.log")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}

	logger := harness.NewLogger(logs)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)

	if shared, err = stage.Start(context.Background(), stage.Options{
		CAPIFeatureGates: map[string]bool{"MachineTaintPropagation": true},
	}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}

	code := m.Run()

	if err := shared.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)

		code = 1
	}

	content, err := os.ReadFile(logs.Name())
	if err != nil || strings.Contains(string(content), "is forbidden: User ") {
		fmt.Fprintln(os.Stderr, "the rights of an installation do not suffice: the log speaks of something that the user is forbidden", err)

		code = 1
	}

	if code == 0 {
		_ = os.Remove(logs.Name()) // a temporary file
	} else {
		fmt.Fprintln(os.Stderr, "log of the managers:", logs.Name())
	}

	os.Exit(code)
}

// onlyLong skips a test that takes longer, unless it is asked for.
func onlyLong(t *testing.T) {
	t.Helper()

	if !*long {
		t.Skip("takes longer: -long")
	}
}
