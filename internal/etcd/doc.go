// SPDX-License-Identifier: Apache-2.0

// Package etcd judges an etcd cluster from what its nodes say about it: which members there are, which machine each belongs to,
// whether a quorum is healthy, and whether a member may be removed or added. It is PURE: it reads nothing and waits for nothing.
//
// Three rules are behind all of it. What is not known is not good: a node that does not answer is neither empty nor gone. A member
// list counts when a quorum of its own voters reports it, since no two lists can have that in one cluster. And a member is known by
// its ID, learnt from its own node; hostnames and addresses keep a member from being removed and never have it removed by themselves.
//
// Adapters fill in Hosts; internal/rollout and the command line ask for verdicts.
package etcd
