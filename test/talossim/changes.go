// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// changedPaths are where two configurations differ, as KIND/NAME.field.field, without what is there.
func changedPaths(before, after []byte) []string {
	old, changed := documents(before), documents(after)
	var paths []string
	for _, key := range slices.Sorted(maps.Keys(merged(old, changed))) {
		paths = append(paths, differences(key, old[key], changed[key])...)
	}
	return paths
}

func merged[V any](one, other map[string]V) map[string]V {
	all := maps.Clone(one)
	maps.Copy(all, other)
	return all
}

// documents are those of a configuration that was accepted, by kind and name.
func documents(raw []byte) map[string]any {
	all := map[string]any{}
	decoder := yaml.NewDecoder(strings.NewReader(string(raw)))
	for {
		var document map[string]any
		if decoder.Decode(&document) != nil {
			return all
		}
		kind, _ := document["kind"].(string)
		if kind == "" {
			kind = "v1alpha1"
		}
		if name, named := document["name"].(string); named {
			kind += "/" + name
		}
		all[kind] = document
	}
}

// differences goes down as far as both are objects.
func differences(path string, before, after any) []string {
	old, isObject := before.(map[string]any)
	changed, stays := after.(map[string]any)
	switch {
	case reflect.DeepEqual(before, after):
		return nil
	case before == nil:
		return []string{"+" + path}
	case after == nil:
		return []string{"-" + path}
	case !isObject || !stays:
		return []string{path}
	}
	var paths []string
	for _, key := range slices.Sorted(maps.Keys(merged(old, changed))) {
		paths = append(paths, differences(fmt.Sprintf("%s.%s", path, key), old[key], changed[key])...)
	}
	return paths
}
