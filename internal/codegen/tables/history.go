// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"path/filepath"
	"strings"

	"github.com/maesh-dev/ichor/internal/codegen/history"
)

// Releases says where the source of each minor of machinery is that nodes may run, oldest first: the older ones are those by which
// test/tools builds validators, the newest is that of the module in dir.
func Releases(dir string) []history.Source {
	module := strings.TrimSuffix(machinery, "/")
	nested := filepath.Join(dir, "test", "tools", "machinery")

	return []history.Source{
		{Dir: nested, Modfile: "talos-1.12.mod", Module: module},
		{Dir: nested, Module: module},
		{Dir: dir, Module: module},
	}
}

// FormChanges are the fields that some minor reads in another form than the one before.
func FormChanges() []history.FormChange {
	const (
		modern = "config/types/meta."
		older  = "config/types/network."
		moved  = "only the package of the type is another"
		text   = " (embedded)"
		args   = "ArgValue (UnmarshalYAML)"
	)

	return []history.FormChange{
		{
			From: "string", To: legacy + args, Items: 14,
			Reason: "a list has the argument more than once; the type is that of Talos 1.13, but the strict decoder of 1.13.0 to 1.13.5 refuses the list",
		},
		{From: legacy + args, To: modern + args, Reason: moved},
		{From: older + "Addr" + text, To: modern + "Addr" + text, Reason: moved},
		{From: older + "AddrPort" + text, To: modern + "AddrPort" + text, Reason: moved},
		{From: older + "Prefix" + text, To: modern + "Prefix" + text, Reason: moved},
		{
			From: "nethelpers.FailOverMAC (uint8)", To: "nethelpers.FailOverMAC (UnmarshalText)",
			Reason: "a number became a name: every value that machinery writes is one that the older minor does not read; package version has the rule",
		},
	}
}
