// SPDX-License-Identifier: Apache-2.0

// Package patch is a kind that holds documents as TalosConfigPatch does, and nothing else.
//
// +groupName=acceptance.ichor.test
// +versionName=v1
package patch

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
)

// +kubebuilder:object:root=true
type Patch struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec Spec `json:"spec"`
}

type Spec struct {
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Documents []machineconfigv1alpha1.Document `json:"documents,omitempty"`
}
