// SPDX-License-Identifier: Apache-2.0

// Package tables holds the decisions behind the typed Talos documents, one row each: which kinds are offered, what stands in
// for Go types with a wire form of their own, which fields are refused and with what words.
//
// Rows name machinery's packages, types and fields as its source has them. A row that matches nothing fails the generator, so
// an upgrade of machinery shows every row that it made obsolete.
//
// To offer a kind, give it a row with a sentence among the offered ones, and run make generate: what it needs besides
// (a substitution, a refusal, an override) is said by errors that name the field. The round trips in package acceptance then
// take up the kind by themselves.
//
// PURE. Only internal/codegen may import it.
package tables
