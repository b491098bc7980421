// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/flags"

	"github.com/maesh-dev/ichor/test/infrastructure/machines"
)

// Fidelities of the machines.
const (
	FidelityLight    = "light"
	FidelityInMemory = "in-memory"
	FidelityFull     = "full"
)

// noDirectory stands for an empty --data-dir where a variable of a manifest must have a default.
const noDirectory = "none"

// Options are the manager's settings. NewOptions gives the defaults.
type Options struct {
	// Fidelity of the machines: FidelityLight, FidelityInMemory or FidelityFull.
	Fidelity string

	// Machines are further settings of the machines. Full and Kubernetes are set by Fidelity.
	Machines machines.Options

	// Farm has the machines, which outlive the manager; Fidelity and Machines are its own then. Nil: the manager makes one, which
	// ends with it.
	Farm *machines.Farm

	// Namespace that is watched. Empty: all.
	Namespace string

	// WatchFilter is the value of the label cluster.x-k8s.io/watch-filter on what is reconciled. Empty: everything.
	WatchFilter string

	// Concurrency is how many SimMachines are reconciled at once.
	Concurrency int

	// LeaderElect lets one manager wait until another ends. Machines do not outlive the manager that has made them.
	LeaderElect bool

	// HealthAddress serves /healthz and /readyz.
	HealthAddress string

	// Diagnostics is the endpoint for metrics and profiles.
	Diagnostics flags.ManagerOptions
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{Fidelity: FidelityFull, Concurrency: 20, HealthAddress: ":9440"}
}

// AddFlags adds a flag for each setting.
func (o *Options) AddFlags(set *pflag.FlagSet) {
	set.StringVar(&o.Fidelity, "fidelity", o.Fidelity,
		"full: control-plane machines run a real etcd member and a real API server. in-memory: etcd is a model, and each cluster has a Kubernetes API in memory. light: etcd is a model, and there is no Kubernetes.")
	set.StringVar(&o.Machines.Dir, "data-dir", o.Machines.Dir,
		"Directory of what the machines' programs write, logs too, and of what is on their disks: NAMESPACE/CLUSTER/MACHINE. "+
			"Machines of full fidelity that are there when the manager starts come back, as after a power failure. "+
			"Empty, or none: temporary directories, and machines that are gone with the manager.")
	set.StringVar(&o.Namespace, "namespace", o.Namespace,
		"Namespace that the manager watches. Empty: all namespaces.")
	set.StringVar(&o.WatchFilter, "watch-filter", o.WatchFilter,
		fmt.Sprintf("Value of the label %s on what the manager reconciles. Empty: everything.", clusterv1.WatchLabel))
	set.IntVar(&o.Concurrency, "concurrency", o.Concurrency,
		"Number of SimMachines that are reconciled at the same time.")
	set.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect,
		"Elect a leader among the managers that run; only the leader works.")
	set.StringVar(&o.HealthAddress, "health-addr", o.HealthAddress,
		"Address of the endpoints /healthz and /readyz.")
	flags.AddManagerOptions(set, &o.Diagnostics)
}

// Validate says which settings make no sense, by the names of their flags.
func (o *Options) Validate() error {
	var faults []error

	if fidelities := []string{FidelityLight, FidelityInMemory, FidelityFull}; !slices.Contains(fidelities, o.Fidelity) {
		faults = append(faults, fmt.Errorf("--fidelity is %q: set %s", o.Fidelity, strings.Join(fidelities, " or ")))
	}

	if o.Concurrency < 1 {
		faults = append(faults, fmt.Errorf("--concurrency is %d: set at least 1", o.Concurrency))
	}

	return errors.Join(faults...)
}
