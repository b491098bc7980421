// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"go.yaml.in/yaml/v4"

	"github.com/maesh-dev/ichor/internal/suggest"
	"github.com/maesh-dev/ichor/internal/version"
)

func itoa(i int) string { return strconv.Itoa(i) }

// wanted names what a plain type takes.
func wanted(t reflect.Type) string {
	if t == durationType {
		return `a duration such as "1m30s"`
	}

	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("a whole number from 0 to %d", ^uint64(0)>>(64-t.Bits())) //nolint:gosec // bits are 8 to 64
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		return "text"
	}
}

// found names the shape of a node, never its value, which may be a secret.
func found(node *yaml.Node) string {
	switch node.Kind { //nolint:exhaustive // the rest is the default
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	}

	switch node.ShortTag() {
	case "!!int":
		return "a whole number"
	case "!!float":
		return "a fractional number"
	case "!!bool":
		return "true or false"
	case "!!null":
		return "null"
	default:
		return "text"
	}
}

// unknownField names the field that may have been meant.
func unknownField(p *plan, name string) error {
	names := make([]string, 0, len(p.fields))
	for i := range p.fields {
		names = append(names, p.fields[i].name)
	}

	if near := suggest.Nearest(name, names); near != "" {
		return fmt.Errorf("unknown field; did you mean %q?", near)
	}

	if near := suggest.Longer(name, names); near != "" {
		return fmt.Errorf("unknown field; did you mean %q?", near)
	}

	names = slices.DeleteFunc(names, func(name string) bool { return name == "apiVersion" || name == "kind" })
	slices.Sort(names)

	if len(names) > 12 {
		return errors.New("unknown field")
	}

	return fmt.Errorf("unknown field; the fields here are %s", strings.Join(names, ", "))
}

// unknownKind names the kind that may have been meant.
func unknownKind(kind string) error {
	const message = "unknown kind: this version of Ichor knows no such Talos document"

	kinds := slices.DeleteFunc(version.Kinds(), func(kind string) bool { return kind == v1alpha1.Version })
	if near := suggest.Nearest(kind, kinds); near != "" {
		return fmt.Errorf("%s; did you mean %s?", message, near)
	}

	return errors.New(message)
}
