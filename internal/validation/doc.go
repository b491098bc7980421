// SPDX-License-Identifier: Apache-2.0

// Package validation finds what is wrong with one object of the bootstrap provider's kinds that its schema cannot say, and that no
// other object can make right: what admission refuses, and what it warns of.
//
// It is PURE, and bounded: its time and memory grow in proportion to the object. It repeats no rule of a schema, which the API server
// checks before. The rules that a render has too are the renderer's own. Webhooks and the command line import it; it imports the
// renderer, storage and version.
package validation
