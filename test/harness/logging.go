// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"io"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// NewLogger writes the messages of every level that the manager allows, so that a secret in any of them is found.
//
// One is left out, which has names of objects only: the priority queue of controller-runtime 0.24 logs its items after it has let go of
// its lock, so the race detector would fail whatever test runs at that moment.
func NewLogger(to io.Writer) klog.Logger {
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(to), textlogger.Verbosity(7)))

	return logger.WithSink(withoutQueueItems{logger.GetSink()})
}

// queueItems is the message that the priority queue logs its items with.
const queueItems = "workqueue_items"

type withoutQueueItems struct{ klog.LogSink }

func (s withoutQueueItems) Info(level int, message string, keysAndValues ...any) {
	if message != queueItems {
		s.LogSink.Info(level, message, keysAndValues...)
	}
}

func (s withoutQueueItems) WithValues(keysAndValues ...any) klog.LogSink {
	return withoutQueueItems{s.LogSink.WithValues(keysAndValues...)}
}

func (s withoutQueueItems) WithName(name string) klog.LogSink {
	return withoutQueueItems{s.LogSink.WithName(name)}
}
