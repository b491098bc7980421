// SPDX-License-Identifier: Apache-2.0

// Package operations tests the managers as their operators meet them: the program as a process of its own, as the
// ServiceAccount of its manifests and with exactly its rights, on a real API server that notes every request. What the control-plane
// manager does to machines is tested in scenarios. It has tests only.
package operations
