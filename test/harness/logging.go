// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"io"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// NewLogger writes every message of every level that the manager allows, so that a secret in any of them is found.
//
// From level 5 on, the priority queue of controller-runtime 0.24 logs its items every ten seconds, after it has let go of its lock: the
// race detector then fails whatever test runs. So the queue stays below.
func NewLogger(to io.Writer) (klog.Logger, error) {
	config := textlogger.NewConfig(textlogger.Output(to), textlogger.Verbosity(7))
	if err := config.VModule().Set("priorityqueue=4"); err != nil {
		return klog.Logger{}, fmt.Errorf("logger: %w", err)
	}

	return textlogger.NewLogger(config), nil
}
