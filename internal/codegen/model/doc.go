// SPDX-License-Identifier: Apache-2.0

// Package model decides what the typed documents look like: it applies the tables to machinery's Go types and yields a
// description of every type, field, bound and rule that is to be emitted.
//
// It guesses nothing. A kind in no table, a Go type that it cannot mirror and no row covers, a row that matches nothing, and
// two types of one name are errors. Lookups always use machinery's own package, type and field names, never a name that
// another rule has made: a row written from machinery's source therefore always hits what its author read.
//
// PURE: no input or output, no clock, no context. Only internal/codegen may import it.
package model
