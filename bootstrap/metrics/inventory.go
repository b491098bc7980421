// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/clustersecrets"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// collectTimeout bounds a collection. It reads from the cache, which answers at once unless it has not been filled.
const collectTimeout = 10 * time.Second

// Inventory counts what is there when the metrics are asked for. It is added to the manager, and only the leader reports,
// so that a sum over the managers counts each object once.
type Inventory struct {
	reader   client.Reader
	secrets  secretsKeeper
	expiries *expiryCache

	conditions, bundles, certificates *prometheus.Desc
}

// secretsKeeper knows how the secrets of clusters are.
type secretsKeeper interface {
	State(ctx context.Context, cluster *clusterv1.Cluster) (clustersecrets.State, error)
}

// NewInventory returns an inventory of what the manager's cache has, and of how the keeper finds the secrets of clusters in it.
func NewInventory(reader client.Reader, keeper secretsKeeper) *Inventory {
	describe := func(metric Metric) *prometheus.Desc {
		return prometheus.NewDesc(metric.Name, metric.Help, metric.labelNames(), nil)
	}

	return &Inventory{
		reader:       reader,
		secrets:      keeper,
		expiries:     newExpiryCache(),
		conditions:   describe(conditions),
		bundles:      describe(bundleState),
		certificates: describe(certificateExpiry),
	}
}

// Start reports until ctx is done.
func (i *Inventory) Start(ctx context.Context) error {
	if err := ctrlmetrics.Registry.Register(i); err != nil {
		// A second manager in one process has the objects of the first.
		if _, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
			ctrl.LoggerFrom(ctx).V(4).Info("Another manager of this process reports the inventory")

			return nil
		}

		return fmt.Errorf("register the inventory: %w", err)
	}

	defer ctrlmetrics.Registry.Unregister(i)

	<-ctx.Done()

	return nil
}

// Describe tells which metrics Collect sends.
func (i *Inventory) Describe(to chan<- *prometheus.Desc) {
	to <- i.conditions

	to <- i.bundles

	to <- i.certificates
}

// Collect counts. What cannot be read is logged and left out: the other metrics are worth more than none.
func (i *Inventory) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()

	tally, clusters := tally{}, map[client.ObjectKey]bool{}

	var faults []error

	faults = append(faults, each(ctx, i.reader, &bootstrapv1.TalosConfigList{}, func(list *bootstrapv1.TalosConfigList) {
		for j := range list.Items {
			config := &list.Items[j]
			tally.add(machineconfig.KindTalosConfig, config.Status.Conditions)

			if cluster := config.Labels[clusterv1.ClusterNameLabel]; cluster != "" {
				clusters[client.ObjectKey{Namespace: config.Namespace, Name: cluster}] = true
			}
		}
	}))
	faults = append(faults, each(ctx, i.reader, &bootstrapv1.TalosClusterConfigList{}, func(list *bootstrapv1.TalosClusterConfigList) {
		for j := range list.Items {
			tally.add(machineconfig.KindTalosClusterConfig, list.Items[j].Status.Conditions)
		}
	}))
	faults = append(faults, each(ctx, i.reader, &bootstrapv1.TalosConfigPatchList{}, func(list *bootstrapv1.TalosConfigPatchList) {
		for j := range list.Items {
			tally.add(machineconfig.KindTalosConfigPatch, list.Items[j].Status.Conditions)
		}
	}))

	for labels, count := range tally {
		to <- prometheus.MustNewConstMetric(i.conditions, prometheus.GaugeValue, float64(count),
			labels.kind, labels.condition, string(labels.status), labels.reason)
	}

	for cluster := range clusters {
		faults = append(faults, i.collectCluster(ctx, cluster, to))
	}

	if err := errors.Join(faults...); err != nil {
		ctrl.Log.WithName("metrics").Error(err, "Some of the inventory cannot be read")
	}
}

// each reads a list without copying its objects, which must not be changed.
func each[L client.ObjectList](ctx context.Context, reader client.Reader, list L, visit func(L)) error {
	if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list for %T: %w", list, err)
	}

	visit(list)

	return nil
}

// said is what a condition says of objects of a kind.
type said struct {
	kind, condition string
	status          metav1.ConditionStatus
	reason          string
}

// tally counts objects by what a condition says.
type tally map[said]int

func (t tally) add(kind string, reported []metav1.Condition) {
	ready := false

	for _, condition := range reported {
		t[said{kind, condition.Type, condition.Status, condition.Reason}]++

		ready = ready || condition.Type == clusterv1.ReadyCondition
	}

	if !ready {
		t[said{kind, clusterv1.ReadyCondition, metav1.ConditionUnknown, notYetReported}]++
	}
}

// notYetReported is the reason when an object has no Ready condition: nobody has looked at it yet.
const notYetReported = "NotYetReported"
