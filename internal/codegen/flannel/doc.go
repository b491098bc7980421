// SPDX-License-Identifier: Apache-2.0

// Package flannel states the options of flannel's backends, which flannel reads into structs that have no names and so cannot
// be mirrored. The names are those of its documentation of backends.
//
// PURE. The generator reads it as source; only internal/codegen may import it.
package flannel
