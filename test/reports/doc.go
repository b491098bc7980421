// SPDX-License-Identifier: Apache-2.0

// Package reports measures what the reports on TalosClusterConfigs and TalosConfigPatches cost: reconciles, reads and writes at the API server,
// and processor time, of a manager that is a process of its own. Its tests assert the counts at a small size; `go test ./test/reports
// -machines 1000 -v` tells them at a large one.
package reports
