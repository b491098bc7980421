// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

// Values of the labels result and reason of renders.
const (
	resultSuccess = "Success"
	resultFailure = "Failure"
	reasonError   = "Error"
)

// Action says why a data Secret was written.
type Action string

// The actions.
const (
	Created     Action = "Created"
	Recreated   Action = "Recreated"
	Regenerated Action = "Regenerated"
	Claimed     Action = "Claimed"
)

// renderBuckets are in seconds. A render takes some milliseconds; one that takes a second has a patch to be looked at.
var renderBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}

var (
	rendersCounter     = counters(renders)
	dataSecretsCounter = counters(dataSecrets)
	bundlesCounter     = prometheus.NewCounter(prometheus.CounterOpts{Name: bundlesCreated.Name, Help: bundlesCreated.Help})
	renderHistogram    = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: renderDuration.Name, Help: renderDuration.Help, Buckets: renderBuckets,
	})
)

func counters(metric Metric) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: metric.Name, Help: metric.Help}, metric.labelNames())
}

func init() {
	ctrlmetrics.Registry.MustRegister(rendersCounter, renderHistogram, dataSecretsCounter, bundlesCounter)

	// Known values are reported from the start, so that the first increase is seen as one.
	rendersCounter.WithLabelValues(resultSuccess, bootstrapv1.TalosConfigConfigRenderedReason)
	rendersCounter.WithLabelValues(resultFailure, reasonError)

	for _, action := range []Action{Created, Recreated, Regenerated, Claimed} {
		dataSecretsCounter.WithLabelValues(string(action))
	}
}

// Rendered counts a machine config that was rendered.
func Rendered() {
	rendersCounter.WithLabelValues(resultSuccess, bootstrapv1.TalosConfigConfigRenderedReason).Inc()
}

// RenderFailed counts a machine config that could not be rendered, or not be written. The reason is that of the condition
// that says why; it is empty for a failure that is tried again and changes no condition.
func RenderFailed(reason string) {
	if reason == "" {
		reason = reasonError
	}

	rendersCounter.WithLabelValues(resultFailure, reason).Inc()
}

// RenderTook notes how long the renderer worked on one config.
func RenderTook(duration time.Duration) { renderHistogram.Observe(duration.Seconds()) }

// DataSecretWritten counts a write of a Secret with a machine config.
func DataSecretWritten(action Action) { dataSecretsCounter.WithLabelValues(string(action)).Inc() }

// BundleCreated counts a secrets bundle that was created.
func BundleCreated() { bundlesCounter.Inc() }
