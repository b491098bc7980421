// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"maps"
	"slices"
)

// Owner says whom it belongs to that no patch may set.
//
// +kubebuilder:object:generate=false
type Owner string

// The owners.
const (
	// OwnerSecretsBundle owns what is secret in a cluster, and what its machines trust.
	OwnerSecretsBundle Owner = "SecretsBundle"
	// OwnerCluster owns what says which cluster and what part of it a machine is: it follows from the objects of Cluster API.
	OwnerCluster Owner = "Cluster"
	// OwnerAnotherManager owns what hands a machine over to another manager.
	OwnerAnotherManager Owner = "AnotherManager"
)

// DeniedKind says of a kind of Talos' documents why no patch may hold one.
//
// +kubebuilder:object:generate=false
type DeniedKind struct {
	Owner Owner
	// Reason is why, and Instead what users do instead: both without a full stop.
	Reason, Instead string
}

// DeniedKinds lists the kinds that no patch may hold, by Talos' name, in a fixed order.
func DeniedKinds() []string { return slices.Sorted(maps.Keys(deniedKinds)) }

// Denied tells of a kind that no patch may hold. It is false for every other, known or not.
func Denied(kind string) (DeniedKind, bool) {
	denied, ok := deniedKinds[kind]

	return denied, ok
}

// OwnedField is a field that only its owner may set, whatever a schema lets pass: whoever renders compares it with what the owner says.
// It stands within no list and no map.
//
// +kubebuilder:object:generate=false
type OwnedField struct {
	Kind DocumentKind
	// Pointer is a JSON Pointer (RFC 6901) into the Talos document.
	Pointer string
	Owner   Owner
}

// OwnedFields lists the fields that only their owners may set, in a fixed order.
func OwnedFields() []OwnedField { return slices.Clone(ownedFields) }
