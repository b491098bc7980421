// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RolloutStrategyType says how machines come to be as the spec wants them.
// +kubebuilder:validation:Enum=InPlace;RollingUpdate;OnDelete
type RolloutStrategyType string

const (
	// InPlaceRollout changes the nodes that exist: upgrades, config changes and reboots, one node at a time. The default.
	InPlaceRollout RolloutStrategyType = "InPlace"

	// RollingUpdateRollout replaces machines one at a time.
	RollingUpdateRollout RolloutStrategyType = "RollingUpdate"

	// OnDeleteRollout leaves machines as they are until the user deletes them.
	OnDeleteRollout RolloutStrategyType = "OnDelete"
)

// RolloutSpec says when and how machines are brought up to date.
// +kubebuilder:validation:MinProperties=1
type RolloutSpec struct {
	// after is the time from which every Machine that was made before it is replaced, whether or not anything else has changed, with
	// type InPlace too. With type OnDelete they are only reported as not up to date.
	// +optional
	After metav1.Time `json:"after,omitempty,omitzero"`

	// strategy says how.
	// +optional
	Strategy RolloutStrategy `json:"strategy,omitempty,omitzero"`
}

// RolloutStrategy says how machines are brought up to date.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.rollingUpdate) || (has(self.type) && self.type == 'RollingUpdate')",message="rollingUpdate is only for type RollingUpdate"
// +kubebuilder:validation:XValidation:rule="!has(self.inPlace) || !has(self.type) || self.type == 'InPlace'",message="inPlace is only for type InPlace"
type RolloutStrategy struct {
	// type of the strategy. Unset: InPlace.
	// +optional
	Type RolloutStrategyType `json:"type,omitempty"`

	// rollingUpdate is for type RollingUpdate.
	// +optional
	RollingUpdate RollingUpdate `json:"rollingUpdate,omitempty,omitzero"`

	// inPlace is for type InPlace.
	// +optional
	InPlace InPlaceUpdate `json:"inPlace,omitempty,omitzero"`
}

// RollingUpdate says how machines are replaced.
// +kubebuilder:validation:MinProperties=1
type RollingUpdate struct {
	// maxSurge is how many machines there may be above replicas: 1, the default, makes the new machine first; 0 removes the old
	// one first, and needs at least 3 replicas.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	MaxSurge *int32 `json:"maxSurge,omitempty"`
}

// InPlaceUpdate says what happens when something cannot be changed in place.
// +kubebuilder:validation:MinProperties=1
type InPlaceUpdate struct {
	// fallback None, the default, reports what cannot be done in place and waits for the user. Replace replaces the machine, as
	// type RollingUpdate does with maxSurge 1.
	// +optional
	Fallback InPlaceFallback `json:"fallback,omitempty"`
}

// InPlaceFallback says what happens when something cannot be changed in place.
// +kubebuilder:validation:Enum=None;Replace
type InPlaceFallback string

const (
	// NoFallback waits for the user.
	NoFallback InPlaceFallback = "None"

	// ReplaceFallback replaces the machine.
	ReplaceFallback InPlaceFallback = "Replace"
)
