// SPDX-License-Identifier: Apache-2.0

// Command codegen writes api/machineconfig/v1alpha1: the types of Talos' documents, mirrored from machinery's Go types.
//
//	go run ./internal/codegen
//
// It runs from anywhere within the repository. The steps are packages: load reads machinery's source, model applies the
// decisions of package tables, emit renders Go source. The output is deterministic and never edited; DeepCopy functions are
// made from it by controller-gen. After an upgrade of machinery, a new kind or a new special type stops it with an error that
// says what to decide.
package main
