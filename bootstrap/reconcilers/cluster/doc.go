// SPDX-License-Identifier: Apache-2.0

// Package cluster sees to the secrets of Clusters between the renders of their machines: the Secrets that are made of the bundle are
// there, agree with it and belong to the Cluster, and the talosconfig is renewed in time. It is not pure; bootstrap/setup imports it.
//
// It makes no bundle: that is done by whoever needs it first, with what that one knows of the cluster. What it finds wrong becomes an event
// of the Cluster, whose status is not ours; machines that wait for it say it in their conditions.
package cluster
