// SPDX-License-Identifier: Apache-2.0

// Package expression reads the CEL expressions of Talos configs in bounded time and memory. Talos reads them without bounds: a few hundred
// letters can take a minute of its type checker, which is no matter on a node and one in a controller that reads what users write.
//
// It is PURE. The renderer, storage and validation import it; it imports cel-go and machinery's expressions.
package expression
