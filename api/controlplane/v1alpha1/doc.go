// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kinds of Ichor's control-plane provider: TalosControlPlane and TalosControlPlaneTemplate.
//
// Everyone may import it; it imports only apimachinery, Cluster API's types and the bootstrap provider's kinds. What one object
// can decide about itself stands beside its field.
//
// +kubebuilder:object:generate=true
// +groupName=controlplane.ichor.maesh.dev
package v1alpha1
