// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/component-base/logs"
	logsv1 "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/feature"
	"sigs.k8s.io/cluster-api/util/flags"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

const maxPort = 65535

// Options are the settings that every manager has. NewOptions gives the defaults.
type Options struct {
	// Namespace that is watched. Empty: all.
	Namespace string

	// WatchFilter is the value of the label cluster.x-k8s.io/watch-filter on the objects that are reconciled. Empty: all.
	WatchFilter string

	// Concurrency is how many objects of the manager's main kind are reconciled at once.
	Concurrency int

	// SyncPeriod is how often every object is reconciled without a cause.
	SyncPeriod time.Duration

	// LeaderElect lets several managers run, of which one works. The lease is in LeaseNamespace; empty: the namespace of
	// the manager's pod.
	LeaderElect                         bool
	LeaseNamespace                      string
	LeaseDuration, RenewDeadline, Retry time.Duration

	// HealthAddress serves /healthz and /readyz.
	HealthAddress string

	// WebhookPort serves the webhooks, with the certificate and key in two files of WebhookCertDir.
	WebhookPort                     int
	WebhookCertDir                  string
	WebhookCertName, WebhookKeyName string

	// KubeAPIQPS and KubeAPIBurst limit the requests to the API server.
	KubeAPIQPS   float32
	KubeAPIBurst int

	// Diagnostics is the endpoint for metrics and profiles, and the TLS settings of that and of the webhooks.
	Diagnostics flags.ManagerOptions

	logs *logs.Options
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		Concurrency:   1,
		SyncPeriod:    10 * time.Minute,
		LeaseDuration: 15 * time.Second,
		RenewDeadline: 10 * time.Second,
		Retry:         2 * time.Second,
		HealthAddress: ":9440",

		WebhookPort:     webhook.DefaultPort,
		WebhookCertDir:  "/tmp/k8s-webhook-server/serving-certs/",
		WebhookCertName: "tls.crt",
		WebhookKeyName:  "tls.key",

		KubeAPIQPS:   100,
		KubeAPIBurst: 200,
		logs:         logs.NewOptions(),
	}
}

// AddFlags adds a flag for each setting. The names are those of Cluster API's own managers. The manager's main kind is named in the
// plural, for example "TalosConfigs".
func (o *Options) AddFlags(set *pflag.FlagSet, kinds string) {
	logsv1.AddFlags(o.logs, set)

	set.StringVar(&o.Namespace, "namespace", o.Namespace,
		"Namespace that the manager watches. Empty: all namespaces.")
	set.StringVar(&o.WatchFilter, "watch-filter", o.WatchFilter,
		fmt.Sprintf("Value of the label %s on the %s that the manager reconciles. Empty: all %[2]s.", clusterv1.WatchLabel, kinds))
	set.IntVar(&o.Concurrency, "concurrency", o.Concurrency,
		fmt.Sprintf("Number of %s that are reconciled at the same time.", kinds))
	set.DurationVar(&o.SyncPeriod, "sync-period", o.SyncPeriod,
		fmt.Sprintf("How often each of the %s is reconciled when nothing has changed.", kinds))

	set.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect,
		"Elect a leader among the managers that run; only the leader works.")
	set.StringVar(&o.LeaseNamespace, "leader-elect-namespace", o.LeaseNamespace,
		"Namespace of the lease. Empty: that of the manager's pod.")
	set.DurationVar(&o.LeaseDuration, "leader-elect-lease-duration", o.LeaseDuration,
		"How long the others wait before they take over from a leader that is silent.")
	set.DurationVar(&o.RenewDeadline, "leader-elect-renew-deadline", o.RenewDeadline,
		"How long the leader tries to renew its lease before it gives up.")
	set.DurationVar(&o.Retry, "leader-elect-retry-period", o.Retry,
		"How long to wait between two tries to get or renew the lease.")

	set.StringVar(&o.HealthAddress, "health-addr", o.HealthAddress,
		"Address of the endpoints /healthz and /readyz.")

	set.IntVar(&o.WebhookPort, "webhook-port", o.WebhookPort,
		"Port of the webhooks.")
	set.StringVar(&o.WebhookCertDir, "webhook-cert-dir", o.WebhookCertDir,
		"Directory with the certificate and key of the webhooks. They are read again when they change.")
	set.StringVar(&o.WebhookCertName, "webhook-cert-name", o.WebhookCertName,
		"Name of the file with the certificate, in the directory of --webhook-cert-dir.")
	set.StringVar(&o.WebhookKeyName, "webhook-key-name", o.WebhookKeyName,
		"Name of the file with the key, in the directory of --webhook-cert-dir.")

	set.Float32Var(&o.KubeAPIQPS, "kube-api-qps", o.KubeAPIQPS,
		"Requests a second to the API server.")
	set.IntVar(&o.KubeAPIBurst, "kube-api-burst", o.KubeAPIBurst,
		"Requests to the API server in one burst.")

	flags.AddManagerOptions(set, &o.Diagnostics)
	feature.MutableGates.AddFlag(set)
}

// Validate says which settings make no sense, by the names of their flags.
func (o *Options) Validate() error {
	faults := checkVerbosities(o.logs)

	if o.Concurrency < 1 {
		faults = append(faults, fmt.Errorf("--concurrency is %d: set at least 1", o.Concurrency))
	}

	if o.SyncPeriod < time.Second {
		faults = append(faults, fmt.Errorf("--sync-period is %s: set at least 1s", o.SyncPeriod))
	}

	if o.WebhookPort < 1 || o.WebhookPort > maxPort {
		faults = append(faults, fmt.Errorf("--webhook-port is %d: set a port from 1 to %d", o.WebhookPort, maxPort))
	}

	if o.KubeAPIQPS > 0 && o.KubeAPIBurst < 1 {
		faults = append(faults, fmt.Errorf("--kube-api-burst is %d: set at least 1", o.KubeAPIBurst))
	}

	if o.LeaderElect && (o.LeaseDuration <= o.RenewDeadline || o.RenewDeadline <= o.Retry) {
		faults = append(faults, fmt.Errorf("--leader-elect-lease-duration (%s) must be longer than --leader-elect-renew-deadline (%s), "+
			"and that longer than --leader-elect-retry-period (%s)", o.LeaseDuration, o.RenewDeadline, o.Retry))
	}

	return errors.Join(faults...)
}
