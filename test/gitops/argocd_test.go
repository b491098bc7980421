// SPDX-License-Identifier: Apache-2.0

package gitops_test

import (
	"path/filepath"
	"slices"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const group = "bootstrap.ichor.maesh.dev"

var argoDirectory = filepath.Join("..", "..", "docs", "gitops", "argocd")

// argoHealth runs the kind's health check as Argo CD does: with the object in the variable obj, and without the libraries
// that Argo CD does not give to scripts unless it is told to, such as string.
func argoHealth(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()

	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()

	state.SetContext(t.Context())

	for name, open := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		state.Push(state.NewFunction(open))
		state.Push(lua.LString(name))
		state.Call(1, 0)
	}

	state.SetGlobal("obj", luaValue(state, object.Object))

	if err := state.DoFile(filepath.Join(argoDirectory, group, object.GetKind(), "health.lua")); err != nil {
		t.Fatal(err)
	}

	result, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the health check returns a %s, not a table", state.Get(-1).Type())
	}

	if message := result.RawGetString("message"); message.Type() != lua.LTString {
		t.Errorf("the message is a %s", message.Type())
	}

	health := result.RawGetString("status").String()
	if !slices.Contains([]string{healthy, progressing, degraded, suspended}, health) {
		t.Errorf("the status %q is none of Argo CD's", health)
	}

	return health
}

func luaValue(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case string:
		return lua.LString(value)
	case bool:
		return lua.LBool(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	case []any:
		table := state.NewTable()
		for _, each := range value {
			table.Append(luaValue(state, each))
		}

		return table
	case map[string]any:
		table := state.NewTable()
		for key, each := range value {
			table.RawSetString(key, luaValue(state, each))
		}

		return table
	default:
		return lua.LNil
	}
}
