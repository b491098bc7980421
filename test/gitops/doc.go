// SPDX-License-Identifier: Apache-2.0

// Package gitops tests what Argo CD and Flux say of Ichor's objects: the health checks in docs/gitops, in the same
// interpreters and with the same libraries. It has tests only.
package gitops
