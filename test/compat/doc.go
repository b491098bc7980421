// SPDX-License-Identifier: Apache-2.0

// Package compat proves with the machinery of older Talos minors that they accept the configs that Ichor renders for them. A
// build holds one version of machinery only, so the older ones are programs of their own; see test/tools.
package compat
