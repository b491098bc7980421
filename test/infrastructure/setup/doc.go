// SPDX-License-Identifier: Apache-2.0

// Package setup turns flags into a running manager of the infrastructure provider sim. It is not pure. The provider's main
// package imports it, and programs of the test world that run the provider in their own process.
package setup
