// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/maesh-dev/ichor/internal/launch"
)

const (
	// concurrency is how many TalosControlPlanes are reconciled at once unless a flag says otherwise.
	concurrency = 100

	// leastGracePeriod is longer than a connection that is lost is held for good: it is probed every 10 s for at most 5 s, and dropped
	// after five failures.
	leastGracePeriod = 2 * time.Minute
)

// Options are the manager's settings. NewOptions gives the defaults.
type Options struct {
	launch.Options

	// RemoteConditionsGracePeriod is how long a workload cluster or a node may be out of reach before what was last known of it counts
	// as unknown.
	RemoteConditionsGracePeriod time.Duration

	// HealthInterval is how often nodes are looked at when all is well, and PollInterval how often while something is awaited that
	// nothing watches.
	HealthInterval, PollInterval time.Duration

	// ClusterCacheConcurrency is how many workload clusters are connected to at once.
	ClusterCacheConcurrency int

	// ClusterCacheQPS and ClusterCacheBurst limit the requests to the API server of each workload cluster.
	ClusterCacheQPS   float32
	ClusterCacheBurst int
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	options := &Options{
		Options:                     *launch.NewOptions(),
		RemoteConditionsGracePeriod: 5 * time.Minute,
		HealthInterval:              time.Minute,
		PollInterval:                20 * time.Second,
		ClusterCacheConcurrency:     100,
		ClusterCacheQPS:             20,
		ClusterCacheBurst:           30,
	}
	options.Concurrency = concurrency

	return options
}

// AddFlags adds a flag for each setting. The names are those of Cluster API's own managers.
func (o *Options) AddFlags(set *pflag.FlagSet) {
	o.Options.AddFlags(set, "TalosControlPlanes")

	set.DurationVar(&o.RemoteConditionsGracePeriod, "remote-conditions-grace-period", o.RemoteConditionsGracePeriod,
		"How long a workload cluster or a node may be out of reach before the conditions that tell of it become unknown.")
	set.DurationVar(&o.HealthInterval, "health-interval", o.HealthInterval,
		"How often the nodes of a control plane are looked at when all is well.")
	set.DurationVar(&o.PollInterval, "poll-interval", o.PollInterval,
		"How often the nodes of a control plane are looked at while something is awaited of them.")
	set.IntVar(&o.ClusterCacheConcurrency, "clustercache-concurrency", o.ClusterCacheConcurrency,
		"Number of workload clusters that are connected to at the same time.")
	set.Float32Var(&o.ClusterCacheQPS, "clustercache-client-qps", o.ClusterCacheQPS,
		"Requests a second to the API server of each workload cluster.")
	set.IntVar(&o.ClusterCacheBurst, "clustercache-client-burst", o.ClusterCacheBurst,
		"Requests to the API server of each workload cluster in one burst.")
}

// Validate says which settings make no sense, by the names of their flags.
func (o *Options) Validate() error {
	faults := []error{o.Options.Validate()}

	if o.RemoteConditionsGracePeriod < leastGracePeriod {
		faults = append(faults, fmt.Errorf("--remote-conditions-grace-period is %s: set at least %s, since a lost connection is noticed only after a while",
			o.RemoteConditionsGracePeriod, leastGracePeriod))
	}

	if o.HealthInterval < time.Second {
		faults = append(faults, fmt.Errorf("--health-interval is %s: set at least 1s", o.HealthInterval))
	}

	if o.PollInterval < time.Second {
		faults = append(faults, fmt.Errorf("--poll-interval is %s: set at least 1s", o.PollInterval))
	}

	if o.ClusterCacheConcurrency < 1 {
		faults = append(faults, fmt.Errorf("--clustercache-concurrency is %d: set at least 1", o.ClusterCacheConcurrency))
	}

	if o.ClusterCacheQPS <= 0 {
		faults = append(faults, fmt.Errorf("--clustercache-client-qps is %g: set more than 0", o.ClusterCacheQPS))
	}

	if o.ClusterCacheBurst < 1 {
		faults = append(faults, fmt.Errorf("--clustercache-client-burst is %d: set at least 1", o.ClusterCacheBurst))
	}

	return errors.Join(faults...)
}
