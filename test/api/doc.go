// SPDX-License-Identifier: Apache-2.0

// Package api proves Ichor's kinds on a real API server: their definitions are accepted, the manifests in examples/ are, and
// what breaks a rule is refused with words that help.
package api
