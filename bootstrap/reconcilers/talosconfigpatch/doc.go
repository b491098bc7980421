// SPDX-License-Identifier: Apache-2.0

// Package talosconfigpatch reports on TalosConfigPatches: whether every machine that a patch applies to can be rendered with it,
// whether it changes anything there, and how many machines run it. It makes nothing that machines need. It is not pure;
// bootstrap/setup imports it.
//
// All patches of a namespace are looked at together, in a survey. Changes are gathered for a while before one is made; machines that
// differ by nothing but their names are rendered once in it, and what a render found is remembered for as long as its inputs stay the same.
//
//	controller.go  one patch: what the survey of its namespace says of it, its status
//	survey.go      a namespace: its machines and what is found for each patch on them
//	window.go      when a survey is made anew
//	judge.go       one group of machines: a render with a record of what set each value
//	status.go      conditions and counts
//	watches.go     what wakes which TalosConfigPatch
package talosconfigpatch
