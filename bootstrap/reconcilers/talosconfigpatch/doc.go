// SPDX-License-Identifier: Apache-2.0

// Package talosconfigpatch reports on TalosConfigPatches: whether every machine that a patch applies to can be rendered with it,
// whether it changes anything there, and how many machines run it. It makes nothing that machines need. It is not pure;
// bootstrap/setup imports it.
//
// Machines that differ by nothing but their names are rendered once, and what the render found is remembered for as long as its inputs
// stay the same, for all patches that apply to them. Changes are gathered for a while before they are looked at.
//
//	controller.go  one patch: its machines, what is said of them, its status
//	judge.go       one group of machines: a render with a record of what set each value
//	status.go      conditions and counts
//	watches.go     what wakes which TalosConfigPatch
package talosconfigpatch
