// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds Talos' configuration documents as typed fields of Kubernetes objects.
//
// The types in zz_generated.*.go mirror those of Talos machinery: a field's JSON name is its name in Talos, and what it means
// stands in Talos' reference, at the address that each kind carries. The rest of the package turns a Document into the JSON
// that Talos reads, and back; it imports no machinery.
//
// A field that no patch may set is there all the same, to be refused with a reason instead of vanishing: see RefusedField.
//
// PURE. Anyone may import it.
//
// +kubebuilder:object:generate=true
package v1alpha1

//go:generate go run ../../../internal/codegen
