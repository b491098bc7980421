// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
)

// environment is what the CEL expressions of some fields know.
type environment struct {
	// Title says what the expressions choose, and Fields where they stand.
	Title, Fields string

	// Example is an expression that Talos takes.
	Example string

	// Variables of the expressions, sorted.
	Variables []variable
}

// variable is a variable, or a field of one.
type variable struct{ Name, Type string }

// environments are Talos' own, as machinery compiles expressions with.
func environments() ([]environment, error) {
	all := []struct {
		environment
		env *cel.Env
	}{
		{environment{
			Title: "Disks", Fields: "`diskSelector.match` of UserVolumeConfig, RawVolumeConfig, SwapVolumeConfig and VolumeConfig; `install.diskSelector` of a TalosConfig",
			Example: `disk.transport == "nvme" && disk.size > 100u * GB && !system_disk`,
		}, celenv.DiskLocator()},
		{environment{
			Title: "Volumes", Fields: "`volumeSelector.match` of ExistingVolumeConfig", Example: `volume.partition_label == "data"`,
		}, celenv.VolumeLocator()},
		{environment{
			Title: "Members", Fields: "`volumeSelector.match` of LVMVolumeGroupConfig and RAIDArrayConfig", Example: `disk.serial == "S1" && !system_disk`,
		}, celenv.MemberVolumeLocator()},
		{environment{
			Title: "Links", Fields: "`selector.match` of LinkAliasConfig", Example: `mac(link.permanent_addr) == "00:1a:2b:3c:4d:5e"`,
		}, celenv.LinkLocator()},
	}

	out := make([]environment, 0, len(all))

	for _, each := range all {
		if _, issues := each.env.Compile(each.Example); issues.Err() != nil {
			return nil, fmt.Errorf("example of expressions that choose %s: %w", strings.ToLower(each.Title), issues.Err())
		}

		each.Variables = variablesOf(each.env)
		out = append(out, each.environment)
	}

	return out, nil
}

// variablesOf lists the variables of an environment, of objects their fields. The units of sizes are constants, and are left out.
func variablesOf(env *cel.Env) []variable {
	var all []variable

	for _, each := range env.Variables() {
		switch each.Type().Kind() { //nolint:exhaustive // the others have no fields
		case types.StructKind:
			names, _ := env.CELTypeProvider().FindStructFieldNames(each.Type().TypeName())
			for _, name := range names {
				if field, ok := env.CELTypeProvider().FindStructFieldType(each.Type().TypeName(), name); ok {
					all = append(all, variable{each.Name() + "." + name, celWord(field.Type)})
				}
			}
		case types.BoolKind, types.StringKind:
			all = append(all, variable{each.Name(), celWord(each.Type())})
		}
	}

	slices.SortFunc(all, func(a, b variable) int { return strings.Compare(a.Name, b.Name) })

	return all
}

func celWord(t *types.Type) string {
	switch t.Kind() {
	case types.UintKind:
		return "unsigned number, compared with such as 100u"
	case types.IntKind:
		return "number"
	case types.BoolKind:
		return "true or false"
	case types.StringKind:
		return "text"
	case types.BytesKind:
		return "bytes"
	case types.ListKind:
		return "list"
	default:
		return "object"
	}
}
