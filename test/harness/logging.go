// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"io"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// NewLoggers are for controllers, and for the Kubernetes client: every message of the levels that the manager allows, so that a secret in any
// of them is found.
//
// Controllers' stays below level 5: from there on, the priority queue of controller-runtime 0.24 logs its items after it has let go of its
// lock, and the race detector fails whatever test runs.
func NewLoggers(to io.Writer) (controllers, client klog.Logger) {
	level := func(verbosity int) klog.Logger {
		return textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(to), textlogger.Verbosity(verbosity)))
	}

	return level(4), level(7)
}
