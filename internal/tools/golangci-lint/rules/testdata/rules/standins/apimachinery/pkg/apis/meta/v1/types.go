// SPDX-License-Identifier: Apache-2.0

// Package v1 stands in for the real one.
package v1

import "time"

// TypeMeta stands in for the real one.
type TypeMeta struct {
	Kind       string `json:"kind,omitempty"`
	APIVersion string `json:"apiVersion,omitempty"`
}

// ObjectMeta stands in for the real one.
type ObjectMeta struct {
	Name string `json:"name,omitempty"`
}

// Condition stands in for the real one.
type Condition struct {
	Type string `json:"type"`
}

// Time stands in for the real one.
type Time struct{ time.Time }

// Now stands in for the real one.
func Now() Time { return Time{} }
