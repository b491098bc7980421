// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 breaks the rules for API packages.
package v1alpha1

import (
	"github.com/siderolabs/talos/pkg/machinery/config" // want "depguard: .*machinery/config.* is not allowed from list 'api'"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client" // want "depguard: .*pkg/client.* is not allowed from list 'api'"

	mirror "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1" // want "imported as .mirror. but must be .machineconfigv1alpha1."
)

// Thing is a kind.
// +kubebuilder:object:root=true
type Thing struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is what the user wants.
	// +required
	Spec ThingSpec `json:"spec,omitzero"`
}

// ThingSpec is what the user wants.
type ThingSpec struct {
	// good is bounded, optional and says so.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Good string `json:"good,omitempty"`

	// unbounded has no maximum length.
	// +kubebuilder:validation:MinLength=1
	// +required
	Unbounded string `json:"unbounded,omitempty"` // want "kubeapilinter: maxlength: .*Unbounded"

	// enabled is a bool, which cannot grow a third value.
	// +optional
	Enabled *bool `json:"enabled,omitempty"` // want "kubeapilinter: nobools: .*Enabled"

	// mode has a default, which the topology controller's dry run cannot bear.
	// +kubebuilder:default=Fast
	// +kubebuilder:validation:Enum=Fast;Slow
	// +optional
	Mode string `json:"mode,omitempty"` // want "kubeapilinter: forbiddenmarkers: .*kubebuilder:default"

	// silent says neither optional nor required.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Silent string `json:"silent,omitempty"` // want "kubeapilinter: optionalorrequired: .*Silent"
}

// Uses keeps the imports in use.
func Uses(config.Provider, client.Client, mirror.Mirror) {}
