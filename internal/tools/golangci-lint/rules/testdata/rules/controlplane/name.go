// SPDX-License-Identifier: Apache-2.0

// Package controlplane is the other provider.
package controlplane

// Name names it.
const Name = "controlplane"
