// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"testing"
	"time"

	"github.com/maesh-dev/ichor/test/infrastructure/machines"
	play "github.com/maesh-dev/ichor/test/scenario"
	"github.com/maesh-dev/ichor/test/stage"
)

// patience bounds every wait for something that must happen.
const patience = 4 * time.Minute

// suite is the stage of all scenarios.
var suite *play.Suite

func TestMain(m *testing.M) {
	play.Main(m, &suite, stage.Options{
		CAPIFeatureGates: map[string]bool{"MachineTaintPropagation": true, "ClusterTopology": true},
		Machines:         machines.Options{Schematics: schematics},
	})
}

// onlyLong skips a test that takes longer, unless it is asked for.
func onlyLong(t *testing.T) {
	t.Helper()
	play.OnlyLong(t)
}
