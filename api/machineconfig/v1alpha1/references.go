// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"reflect"
	"strings"
)

// SecretKeyReference names a key of a Secret in the namespace of the object that holds the document.
//
// ---
type SecretKeyReference struct {
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}

// ConfigMapKeyReference names a key of a ConfigMap in the namespace of the object that holds the document.
//
// ---
type ConfigMapKeyReference struct {
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}

// ValueSource says where a value comes from: one of its fields is set.
//
// ---
// +kubebuilder:validation:XValidation:rule="has(self.secretKeyRef)!=has(self.configMapKeyRef)",message="set exactly one of secretKeyRef and configMapKeyRef"
type ValueSource struct {
	// A key of a Secret.
	// +optional
	SecretKeyRef *SecretKeyReference `json:"secretKeyRef,omitempty"`

	// A key of a ConfigMap.
	// +optional
	ConfigMapKeyRef *ConfigMapKeyReference `json:"configMapKeyRef,omitempty"`
}

// The kinds of a Source.
const (
	SourceSecret    = "Secret"
	SourceConfigMap = "ConfigMap"
)

// Source is a key of a Secret or ConfigMap. It can be compared and used as a map's key.
//
// +kubebuilder:object:generate=false
type Source struct {
	// Kind is SourceSecret or SourceConfigMap.
	Kind string
	// Name is the object's name, in the namespace of the object that holds the document.
	Name string
	// Key is a key of the object's data.
	Key string
}

// String names the key for users.
func (s Source) String() string { return fmt.Sprintf("key %q of %s %q", s.Key, s.Kind, s.Name) }

// Reference is a place in a document whose value comes from elsewhere.
//
// +kubebuilder:object:generate=false
type Reference struct {
	// Path leads to the reference within the document's content: machine.env or peers[0].presharedKeySecretRef.
	Path string
	// Field is the field that gets the value, as a JSON Pointer (RFC 6901) into the Talos document. Of a map or list with several
	// references it is the whole of it.
	Field string
	// Pod tells that the value is a whole pod, in YAML or JSON.
	Pod bool
	// Source is what is referred to.
	Source Source
	// Credential tells that the field is a secret by its nature, so that it cannot be written in a document at all. The values
	// of other fields may be secret as well, as everything is that comes from a Secret.
	Credential bool
}

// Values gives the value of a source. It reports false for one that it does not know.
//
// +kubebuilder:object:generate=false
type Values func(Source) (string, bool)

// References lists every reference in the document, in a fixed order. A source that sets none or both of its fields, which the
// API server admits in no document, is left out; TalosJSON reports it.
func (d *Document) References() []Reference {
	var out []Reference

	for _, found := range d.walk().references {
		out = append(out, found.Reference)
	}

	return out
}

// ResolvedSecrets lists what TalosJSON takes from Secrets: JSON Pointers (RFC 6901) into the Talos document, in a fixed order.
// A pointer leads to a string, or for a whole pod to an object.
func (d *Document) ResolvedSecrets() []string {
	var out []string

	for _, found := range d.walk().references {
		if found.Source.Kind == SourceSecret {
			out = append(out, found.pointer)
		}
	}

	return out
}

// walk goes through the document without resolving anything.
func (d *Document) walk() *talosEncoder {
	enc := &talosEncoder{}

	for _, kind := range d.populated() {
		// The error is of no interest: it tells of values that cannot be encoded, and TalosJSON reports it.
		_, _ = enc.value(reflect.ValueOf(d.member(kind)), place{})
	}

	return enc
}

// ReferenceError tells which references of a document cannot be used, and why. It carries no value.
//
// +kubebuilder:object:generate=false
type ReferenceError struct {
	Kind   DocumentKind
	Faults []ReferenceFault
}

// ReferenceFault is a reference that cannot be used.
//
// +kubebuilder:object:generate=false
type ReferenceFault struct {
	// Reference is the place, and its source if it has one.
	Reference Reference
	// Missing is set if all that is wrong is that there is no value.
	Missing bool
	// Message says what is wrong and what to do.
	Message string
}

// Error names each reference once.
func (e *ReferenceError) Error() string {
	lines := make([]string, 0, len(e.Faults))
	for _, f := range e.Faults {
		lines = append(lines, f.Reference.Path+": "+f.Message)
	}

	return fmt.Sprintf("%s: %s", e.Kind, strings.Join(lines, "; "))
}

func (v *ValueSource) source() (Source, bool) {
	switch {
	case (v.SecretKeyRef == nil) == (v.ConfigMapKeyRef == nil):
		return Source{}, false
	case v.SecretKeyRef != nil:
		return Source{Kind: SourceSecret, Name: v.SecretKeyRef.Name, Key: v.SecretKeyRef.Key}, true
	default:
		return Source{Kind: SourceConfigMap, Name: v.ConfigMapKeyRef.Name, Key: v.ConfigMapKeyRef.Key}, true
	}
}
