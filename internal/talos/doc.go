// SPDX-License-Identifier: Apache-2.0

// Package talos speaks to the nodes of a cluster over the Talos API. It is an ADAPTER: a context goes in, domain structs come out, and no
// type of Talos' protocol leaves it. Reconcilers and the command line may import it.
//
// Three rules are behind all of it. A node that does not answer is unknown, never empty, and never delays the others. A node that answers
// is believed only when it is proved to be the machine that was meant: an address may have moved to another one. And a call carries a
// certificate of the least role that Talos takes for it, which lives for minutes.
//
//	pool.go         connections, by cluster; what closes them
//	authority.go    client certificates, made from the cluster's bundle when they are needed
//	connection.go   a connection, and what is known of why it failed
//	reach.go        the addresses of a machine that may be dialled
//	session.go      a connection on which a node was proved to be a machine
//	identity.go     the proof
//	nodes.go        the nodes of a cluster, and asking all of them at once
//	node.go         what a node says: the result of an observation
//	read.go         the reads of an observation
//	etcdview.go     what a node says of etcd, and the proof that it has no etcd data
//	operations.go   what changes something
//	maintenance.go  whether a node has no configuration
//	errors.go       classes of errors
//	classify.go     how an error gets its class
//
// The client is gRPC's own with the services of Talos' machinery, and not machinery's client: that one makes its TLS by itself and answers
// a wrong authority, an expired certificate and a closed port with one and the same error. Here the errors of connections are taken where
// they have types.
package talos
