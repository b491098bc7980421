// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"testing"

	"github.com/maesh-dev/ichor/test/scenario"
	"github.com/maesh-dev/ichor/test/stage"
)

// suite is the stage of all scenarios of this package.
var suite *scenario.Suite

func TestMain(m *testing.M) { scenario.Main(m, &suite, stage.Options{}) }
