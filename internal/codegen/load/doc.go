// SPDX-License-Identifier: Apache-2.0

// Package load reads the document kinds of Talos machinery, with their Go types, from source.
//
// Nothing of machinery is executed or linked: a kind is found where machinery registers it, so no list of kinds exists that
// could fall behind. Not pure: it runs the go command. Only internal/codegen may import it.
package load
