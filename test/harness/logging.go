// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"io"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// NewLogger writes every message up to level 4, so that a secret in any of them is found.
//
// From level 5 on, the priority queue of controller-runtime 0.24 logs its items every ten seconds, after it has let go of its lock: the
// race detector then fails whatever test runs.
func NewLogger(to io.Writer) klog.Logger {
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(to), textlogger.Verbosity(4)))
}
