// SPDX-License-Identifier: Apache-2.0

// Package manifest reads Kubernetes manifests from files: it finds the documents, knows where each of them stands, and sorts
// the objects that a machine config is rendered from into a Set. Objects of Ichor's own kinds are checked as the API server
// checks them; see package admission.
//
// It reads files and standard input, and nothing else. The command line imports it; it imports the API types.
package manifest
