// SPDX-License-Identifier: Apache-2.0

// Package installation puts Ichor's providers into a management cluster of the test world: everything that kustomize makes of
// config/bootstrap/default or config/controlplane/default and that means something without pods, with the labels that clusterctl
// sets, and a manager in this process with the rights of that and no more. It plays the parts of cert-manager, which makes
// the certificate and tells the API server whom to trust, and of the Service, which leads to the manager.
//
// It is not pure, and only packages under test/ may import it.
package installation
