// SPDX-License-Identifier: Apache-2.0

// Package pods plays the parts of scheduler, kubelet and kube-proxy for the managers of providers in a management cluster of the
// test world. The Pods are those that the real Deployment and ReplicaSet controllers make; each runs as a process:
//
//   - the image's last path element names the program (Image), with its tag where each version has its own;
//   - arguments and environment are the container's;
//   - the API server is reached as the Pod's ServiceAccount, with a token that is bound to the Pod, as in a cluster;
//   - Secrets that are mounted are files, and follow the Secret;
//   - readiness and liveness probes are asked as they say, and make the Pod ready, restarted or neither;
//   - a Pod that is deleted has its process asked to end, and killed after the grace period; also one that is deleted without
//     grace, and is gone before its process.
//
// A process shares files and ports with the machine, which a container does not, so flags follow the arguments: the addresses of
// the health and diagnostics endpoints get the Pod's IP, a loopback address of its own; the webhooks, which cannot be bound to an
// address, get a port of their own; and the directory of mounted certificates is named. Endpoint, which the API server asks by
// way of the harness, leads from a Service to these. A leader is elected where the manager can be told the namespace of the lease
// by a flag; elsewhere the election is turned off, because client libraries read the namespace from a file that only containers
// have.
//
// It is not pure, and only packages under test/ may import it.
package pods
