// SPDX-License-Identifier: Apache-2.0

// Package bootstrap is a provider.
package bootstrap

// Name names it.
const Name = "bootstrap"
