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

var errAdvertised = errors.New("would have every member of the patch advertise the same address, and the members lose each other: " +
	"choose among each machine's own addresses with cluster.etcd.advertisedSubnets")

// endangersEtcd refuses what loses data that etcd has confirmed, lets a change of its members break quorum, or keeps etcd from starting on
// every Talos.
func endangersEtcd(flag string, values []string) error {
	is := func(value string) bool { return slices.Contains(values, value) }

	if slices.Contains(ownOfOldTalos, flag) {
		return errOwnEtcdFlag
	}

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
