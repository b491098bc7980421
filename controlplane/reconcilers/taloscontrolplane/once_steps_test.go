// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// TestBootstrapOnceKilledAtEveryStep kills the manager once in each life, at one step after the other, before it and after it, and lets nothing
// else happen. The next manager brings the control plane up all the same. Steps are left out by default; with -lives none is.
func TestBootstrapOnceKilledAtEveryStep(t *testing.T) {
	ctrl.SetLogger(logr.Discard())

	made := newLifeSecrets(t)

	stride := defaultStride
	if *lives > 0 {
		stride = 1
	}

	for step, last := 1, false; !last; step += stride {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("step %d, done %t", step, after), func(t *testing.T) {
				l := newLife(t, 1, made, 1)
				defer l.end()

				l.storm, l.killAt, l.killAfter = false, step, after
				l.finish(1, false)

				// The control plane is up before the manager comes to that step.
				last = l.killAt > 0
			})
		}
	}
}
