// SPDX-License-Identifier: Apache-2.0

// Package admission tests the webhooks of the bootstrap provider: on a real API server, behind the configuration that
// `kustomize build config/bootstrap/default` gives, in a manager with the rights of that. What the schemas refuse is tested in test/api.
//
// Tests that prove a rule of Cluster API's contract for bootstrap providers name it as "contract: ...".
package admission
