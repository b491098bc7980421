// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/siderolabs/talos/pkg/machinery/config/config"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// etcdNumbers are the flags of etcd that take a whole number. With anything else etcd does not start, on one member after the other.
var etcdNumbers = []string{
	"backend-batch-limit", "election-timeout", "heartbeat-interval", "max-concurrent-streams", "max-request-bytes", "max-snapshots", "max-txn-ops",
	"max-wals", "quota-backend-bytes", "snapshot-count",
}

var errAdvertised = errors.New("would have every member of the patch advertise the same address, and the members lose each other: " +
	"choose among each machine's own addresses with cluster.etcd.advertisedSubnets")

// endangersEtcd refuses what loses data that etcd has confirmed, or lets a change of its members break quorum, and what it does not start with.
func endangersEtcd(flag string, values []string) error {
	is := func(value string) bool { return slices.Contains(values, value) }

	switch flag {
	case "unsafe-no-fsync":
		if !is("false") {
			return errors.New("loses what etcd has confirmed when a machine stops, and with it the cluster: remove it")
		}
	case "strict-reconfig-check":
		if !is("true") {
			return errors.New("lets a change of members break the quorum of etcd: remove it")
		}
	case "pre-vote":
		if !is("true") {
			return errors.New("lets a member that was cut off disturb the others when it is back: remove it")
		}
	case "initial-advertise-peer-urls", "advertise-client-urls":
		return errAdvertised
	case "auto-compaction-mode":
		if !is("periodic") && !is("revision") {
			return fmt.Errorf("is %q, and etcd would not start: use periodic or revision", values)
		}
	}

	if !slices.Contains(etcdNumbers, flag) {
		return nil
	}

	for _, value := range values {
		// Less than nothing turns the quota off.
		if number, err := strconv.ParseInt(value, 10, 64); err != nil || number < 0 && flag != "quota-backend-bytes" {
			return fmt.Errorf("is %q, and etcd takes a whole number without unit there, or does not start", value)
		}
	}

	return nil
}

// The defaults of etcd, in milliseconds, and how much longer an election must be at least.
const (
	etcdHeartbeat   = 100
	etcdElection    = 1000
	etcdLongest     = 50000
	etcdElectionMin = 5
)

// etcdTimes finds times with which etcd does not start: both flags together decide.
func etcdTimes(documents []config.Document) []finding {
	_, cluster := legacyOf(documents)
	if cluster.EtcdConfig == nil {
		return nil
	}

	args := cluster.EtcdConfig.EtcdExtraArgs.ToMap()
	milliseconds := func(flag string, usual uint64) uint64 {
		values := args[flag]
		if len(values) == 0 {
			return usual
		}

		number, err := strconv.ParseUint(values[len(values)-1], 10, 63)
		if err != nil {
			return usual
		}

		return number
	}

	heartbeat, election := milliseconds("heartbeat-interval", etcdHeartbeat), milliseconds("election-timeout", etcdElection)
	if election >= etcdElectionMin*heartbeat && election <= etcdLongest && heartbeat > 0 {
		return nil
	}

	flag := "election-timeout"
	if _, set := args[flag]; !set {
		flag = "heartbeat-interval"
	}

	return []finding{{
		document: merge.ID{Kind: merge.LegacyKind}, field: "/cluster/etcd/extraArgs/" + flag,
		err: fmt.Errorf("etcd would not start: its election-timeout (%d ms) must be at least %d times its heartbeat-interval (%d ms), and at most %d",
			election, etcdElectionMin, heartbeat, etcdLongest),
	}}
}
