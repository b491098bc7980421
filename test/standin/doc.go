// SPDX-License-Identifier: Apache-2.0

// Package standin plays the providers that Ichor's bootstrap provider works with and that are not what is tested: an
// infrastructure provider and a control-plane provider, over the generic kinds of Cluster API's test builder.
//
// It does what Cluster API's contracts ask of them and what the core manager looks at, and no more. A machine starts when
// Cluster API has handed over its bootstrap data and the Secret has some, as with a real provider: it becomes a Node of the
// workload cluster, with the provider ID. A control plane has one Machine, whatever its replicas are, and answers once that
// runs. While a Cluster is paused, nothing is done for it. What a stand-in cannot show is that Talos boots from the data.
//
// It is not pure, and only packages under test/ may import it.
package standin
