// SPDX-License-Identifier: Apache-2.0

// Package v1beta2 holds Longhorn's kinds as far as the simulated Longhorn uses them: the names, types and allowed values of
// Longhorn's API longhorn.io/v1beta2 (1.9 to 1.12), without the fields for backups, snapshots and engine upgrades. They are
// written for the simulation; the product reads Longhorn through its own, tolerant structs.
//
// Packages under test/ and programs that start the test world may import it.
//
// +kubebuilder:object:generate=true
// +groupName=longhorn.io
package v1beta2
