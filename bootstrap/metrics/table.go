// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"strings"
)

// Type is a Prometheus metric type.
type Type string

// The types that are used.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Metric describes one metric.
type Metric struct {
	Name   string
	Type   Type
	Labels []Label
	Help   string
}

// Label describes a label and what its values are.
type Label struct{ Name, Meaning string }

// The labels that say which cluster is meant.
var (
	namespaceLabel = Label{"namespace", "of the Cluster"}
	clusterLabel   = Label{"cluster", "name of the Cluster"}
)

var (
	renders = Metric{
		Name: "ichor_bootstrap_renders_total", Type: Counter,
		Labels: []Label{
			{"result", "`Success` or `Failure`"},
			{"reason", "`Rendered`, the reason of the condition that the failure became, or `Error` for what is tried again"},
		},
		Help: "Machine configs that were to be rendered.",
	}
	renderDuration = Metric{
		Name: "ichor_bootstrap_render_duration_seconds", Type: Histogram,
		Help: "Time that rendering and validating one machine config took, without reading its inputs.",
	}
	dataSecrets = Metric{
		Name: "ichor_bootstrap_data_secrets_written_total", Type: Counter,
		Labels: []Label{{"action", "`Created`, `Recreated` after a deletion, `Regenerated` for a MachinePool, `Claimed` after a move or restore"}},
		Help:   "Writes of Secrets with a machine config.",
	}
	bundlesCreated = Metric{
		Name: "ichor_bootstrap_secrets_bundles_created_total", Type: Counter,
		Help: "Secrets bundles that were created. A cluster gets one in its life.",
	}
	conditions = Metric{
		Name: "ichor_bootstrap_object_conditions", Type: Gauge,
		Labels: []Label{
			{"kind", "`TalosConfig`, `TalosClusterConfig` or `TalosConfigPatch`"},
			{"condition", "type of the condition"},
			{"status", "`True`, `False` or `Unknown`"},
			{"reason", "reason of the condition; `NotYetReported` for objects without a Ready condition"},
		},
		Help: "Objects by what their conditions say.",
	}
	bundleState = Metric{
		Name: "ichor_bootstrap_secrets_bundle_state", Type: Gauge,
		Labels: []Label{
			namespaceLabel, clusterLabel,
			{"state", "`Available`, `Awaited` before the first machine is rendered, or the reason of a fault: `Missing` though machines have them, `Invalid`, `Mismatch`"},
		},
		Help: "1 for the state of the secrets of a cluster that has TalosConfigs: its bundle, and what must agree with it.",
	}
	certificateExpiry = Metric{
		Name: "ichor_bootstrap_certificate_expiry_timestamp_seconds", Type: Gauge,
		Labels: []Label{
			namespaceLabel, clusterLabel,
			{"certificate", "`talosconfig`, `talos-ca`, `kubernetes-ca`, `etcd-ca` or `aggregator-ca`"},
		},
		Help: "When the certificate expires, in seconds since 1970.",
	}
)

// Table returns every metric of the bootstrap provider, in the order of the documentation.
func Table() []Metric {
	return []Metric{renders, renderDuration, dataSecrets, bundlesCreated, conditions, bundleState, certificateExpiry}
}

// Markdown returns the table for the documentation.
func Markdown() string {
	var text strings.Builder

	text.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")

	for _, metric := range Table() {
		labels := make([]string, len(metric.Labels))
		for i, label := range metric.Labels {
			labels[i] = fmt.Sprintf("`%s`: %s", label.Name, label.Meaning)
		}

		fmt.Fprintf(&text, "| `%s` | %s | %s | %s |\n", metric.Name, metric.Type, strings.Join(labels, "<br>"), metric.Help)
	}

	return text.String()
}

func (m Metric) labelNames() []string {
	names := make([]string, len(m.Labels))
	for i, label := range m.Labels {
		names[i] = label.Name
	}

	return names
}
