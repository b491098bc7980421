// SPDX-License-Identifier: Apache-2.0

// Package invariants holds what is true of a cluster of the test world at every moment, whatever a scenario does: the quorum of
// etcd is kept, etcd is bootstrapped once, no more nodes are disturbed at once than may be, control-plane Machines are born with
// their hook, no member leaves etcd before its Machine is drained, no Node is deleted by Ichor, no secret is anywhere but in Secrets,
// and nothing is written when there is nothing to do.
//
// A Watch looks at a cluster from its birth to its end. Some of it is seen at moments only, so it samples the machines all the
// while, and is asked for everything after each step of a scenario. It looks at the machines from outside, as who stands in front
// of them: neither the calls nor the transcript of a node show it.
//
// It is not pure, and only packages under test/ may import it.
package invariants
