// SPDX-License-Identifier: Apache-2.0

// Package admission tests the webhooks of both providers: on a real API server, behind the configurations that kustomize makes of
// config/bootstrap/default and config/controlplane/default, in managers with the rights of those. What the schemas refuse is tested in
// test/api.
//
// Tests that prove a rule of Cluster API's contract name it as "contract: ...".
package admission
