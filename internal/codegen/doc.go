// SPDX-License-Identifier: Apache-2.0

// Command codegen writes what follows from the source of Talos machinery: api/machineconfig/v1alpha1, the types of Talos'
// documents, mirrored from machinery's Go types, the tables of package version that say since when Talos knows what, and the API
// reference in docs/reference.
//
//	go run ./internal/codegen
//
// It runs from anywhere within the repository. The steps are packages: load reads machinery's source, history that of the older
// minors too, model applies the decisions of package tables, emit renders Go source. The output is deterministic and never edited;
// DeepCopy functions are made from it by controller-gen. After an upgrade of machinery, a new kind, a new special type or a field
// that changed its form stops it with an error that says what to decide.
package main
