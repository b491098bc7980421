// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"flag"
	"testing"
	"time"

	play "github.com/maesh-dev/ichor/test/scenario"
	"github.com/maesh-dev/ichor/test/stage"
)

// patience bounds every wait for something that must happen.
const patience = 4 * time.Minute

var long = flag.Bool("long", false, "run the scenarios that take longer, too")

// suite is the stage of all scenarios.
var suite *play.Suite

func TestMain(m *testing.M) {
	play.Main(m, &suite, stage.Options{CAPIFeatureGates: map[string]bool{"MachineTaintPropagation": true, "ClusterTopology": true}})
}

// onlyLong skips a test that takes longer, unless it is asked for.
func onlyLong(t *testing.T) {
	t.Helper()

	if !*long {
		t.Skip("takes longer: -long")
	}
}
