// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Values of the label result.
const (
	resultSuccess = "Success"
	resultFailure = "Failure"
)

// What is in the metric beside actions: each failure of what comes before and after them. What succeeds does so all the time, and is not
// counted.
const (
	// actionObserve is to read what there is. Without it nothing is decided.
	actionObserve = "Observe"

	// actionSettle is what is done when nothing else is.
	actionSettle = "Settle"

	// actionReport is to write the conditions and the status.
	actionReport = "Report"
)

var actionsCounter = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "ichor_controlplane_actions_total",
	Help: "Actions on control planes, by what was done and how it ended.",
}, []string{"action", "result"})

func init() { ctrlmetrics.Registry.MustRegister(actionsCounter) }

// counted counts an action.
func counted(action string, fault error) {
	result := resultSuccess
	if fault != nil {
		result = resultFailure
	}

	actionsCounter.WithLabelValues(action, result).Inc()
}
