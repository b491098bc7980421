// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding"
	"encoding/base64"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// printer gives the function that writes a scalar as the encoded config does.
func printer(t reflect.Type) func(reflect.Value) string {
	switch {
	case t == durationType:
		return func(v reflect.Value) string { return time.Duration(v.Int()).String() }
	case implements(t, yamlOutType):
		return func(v reflect.Value) string {
			return printAny(must(methods(v).(yaml.Marshaler).MarshalYAML())) //nolint:forcetypeassert // checked above
		}
	case implements(t, textMarshalerType):
		return func(v reflect.Value) string {
			return string(must(methods(v).(encoding.TextMarshaler).MarshalText())) //nolint:forcetypeassert // checked above
		}
	}

	switch t.Kind() {
	case reflect.String:
		return reflect.Value.String
	case reflect.Bool:
		return func(v reflect.Value) string { return strconv.FormatBool(v.Bool()) }
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(v reflect.Value) string { return strconv.FormatInt(v.Int(), 10) }
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return func(v reflect.Value) string { return strconv.FormatUint(v.Uint(), 10) }
	case reflect.Slice:
		return func(v reflect.Value) string { return base64.StdEncoding.EncodeToString(v.Bytes()) }
	default:
		return func(v reflect.Value) string { return fmt.Sprint(v.Interface()) }
	}
}

// must keeps a value that cannot be written visible as such: to print is not
// the place to fail, Encode will.
func must[T any](value T, err error) T {
	if err != nil {
		var zero T

		return zero
	}

	return value
}

// methods gives the value in the form that has pointer methods too.
func methods(v reflect.Value) any {
	if v.CanAddr() {
		return v.Addr().Interface()
	}

	p := reflect.New(v.Type())
	p.Elem().Set(v)

	return p.Interface()
}

func printAny(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case string:
		return value
	case *yaml.Node:
		return printNode(value)
	case time.Time:
		return value.Format(time.RFC3339Nano)
	default:
		return fmt.Sprint(value)
	}
}

func printNode(node *yaml.Node) string {
	if node.Kind == yaml.ScalarNode {
		return node.Value
	}

	var out strings.Builder
	out.WriteString("[")

	for i, item := range node.Content {
		if i > 0 {
			out.WriteString(", ")
		}

		out.WriteString(strconv.Quote(item.Value))
	}

	return out.String() + "]"
}
