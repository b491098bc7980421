// SPDX-License-Identifier: Apache-2.0

// Package operations tests the bootstrap manager as its operators meet it: the program as a process of its own, as the
// ServiceAccount of config/bootstrap and with exactly its rights, on a real API server that notes every request. It has
// tests only.
package operations
