// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kinds of the infrastructure provider sim: SimCluster, SimMachine, their templates, and SimMachinePool. They keep
// Cluster API's contract v1beta2 for infrastructure providers. What they stand for is simulated by package talossim.
//
// Packages under test/ and programs that start the test world may import it.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.ichor.maesh.dev
package v1alpha1
