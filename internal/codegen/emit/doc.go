// SPDX-License-Identifier: Apache-2.0

// Package emit turns the model into Go source: types and markers, no conversion code.
//
// The templates hold what a file looks like, markers.go what the model's rules are called in kubebuilder's language. PURE: the
// caller writes the files. Only internal/codegen may import it.
package emit
