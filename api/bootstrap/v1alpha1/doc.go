// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kinds of Ichor's bootstrap provider: TalosConfig and its template,
// TalosClusterConfig, TalosConfigPatch and TalosStorage.
//
// Everyone may import it; it imports only apimachinery, Cluster API's types and the typed Talos
// documents. Validation that one object can decide stands beside its field; what needs other objects
// is decided by the renderer and becomes a condition.
//
// +kubebuilder:object:generate=true
// +groupName=bootstrap.ichor.maesh.dev
package v1alpha1
