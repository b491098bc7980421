// SPDX-License-Identifier: Apache-2.0

// Package reference writes the API reference of the typed Talos documents, as Markdown: what each kind is for, and for every field
// its form, the first Talos that has it, how it merges, and what to use where it is refused.
//
// PURE: the caller writes the pages. What the pages say of forms comes from the model, of versions from the history, of merging from
// machinery's merge tags and the rows of this package, which a test in package acceptance compares with the merge itself. Only
// internal/codegen may import it.
package reference
