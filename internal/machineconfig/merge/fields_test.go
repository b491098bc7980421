// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"go.yaml.in/yaml/v4"
)

// TestEveryField takes every field of every kind that machinery has. A patch that says only this field must set it as a
// whole and keep all others, and applied again must change nothing.
func TestEveryField(t *testing.T) {
	count, types := 0, map[string]bool{}

	eachKind(t, func(t *testing.T, kind string, empty config.Document) {
		base, other := full(t, empty, 0), full(t, empty, 1)
		before := encode(t, base)

		places := placesOf(base)
		if len(places) == 0 {
			t.Fatal("found no field")
		}

		for _, p := range places {
			if p.isIdentityPlace(base) {
				continue
			}

			count++

			value := p.get(reflect.ValueOf(other).Elem())
			for value.Kind() == reflect.Pointer {
				value = value.Elem()
			}

			patch := mustLoad(t, p.saying(t, base, wireOf(t, value)))

			want := mustClone(t, base)
			p.set(reflect.ValueOf(want).Elem(), value)
			settleHostname(p, want)

			checkApplied(t, p, base, patch, want)

			types[p.typ.String()] = true
		}

		// Machinery's own copy shares some pointers, so this compares bytes.
		if diff := cmp.Diff(before, encode(t, base)); diff != "" {
			t.Errorf("the base was changed: (-before +after)\n%s", diff)
		}
	})

	if count < 540 {
		t.Errorf("walked %d fields, want at least 540", count)
	}

	for _, lossy := range []string{"cel.Expression", "block.ByteSize", "block.Size", "meta.URL", "v1alpha1.Endpoint", "time.Duration", "bool"} {
		if !types[lossy] {
			t.Errorf("walked no field of type %s", lossy)
		}
	}
}

func mustClone(t testing.TB, doc config.Document) config.Document {
	t.Helper()

	clone, err := cloneDocument(doc)
	if err != nil {
		t.Fatal(err)
	}

	return clone
}

func checkApplied(t *testing.T, p place, base config.Document, patch *Patch, want config.Document) {
	t.Helper()

	before := mustClone(t, base)
	c := configOf(t, base)

	for range 2 {
		mustApply(t, c, patch, nil)
		same(t, p.pointer(), want, c.docs[0].doc)
	}

	same(t, p.pointer()+": the base was changed", before, base)
}

// same compares documents, by their encoded form when they are not equal in Go: an empty list need not be a nil one.
func same(t *testing.T, what string, want, got config.Document) {
	t.Helper()

	if reflect.DeepEqual(want, got) {
		return
	}

	if diff := cmp.Diff(encode(t, want), encode(t, got)); diff != "" {
		t.Errorf("%s: (-want +got)\n%s", what, diff)
	}
}

// settleHostname does by hand what the rule for HostnameConfig does.
func settleHostname(p place, doc config.Document) {
	if doc.Kind() != "HostnameConfig" {
		return
	}

	other := map[string]string{"/hostname": "ConfigAuto", "/auto": "ConfigHostname"}[p.pointer()]
	said := reflect.ValueOf(doc).Elem().FieldByName(map[string]string{"/hostname": "ConfigHostname", "/auto": "ConfigAuto"}[p.pointer()])

	if off := said.Kind() == reflect.Pointer && said.Elem().IsZero(); other != "" && !said.IsZero() && !off {
		reflect.ValueOf(doc).Elem().FieldByName(other).SetZero()
	}
}

// noZero are the types of which Talos cannot read a zero value, and why.
var noZero = map[string]string{
	"v1alpha1.InstallDiskSizeMatcher": "a condition without a size is not a size",
	"nethelpers.Protocol":             "its zero is no protocol and has no name",
	"nethelpers.VLANProtocol":         "its zero is no protocol and has no name",
}

// zeroText is the zero value as a user writes it.
func zeroText(t reflect.Type) *yaml.Node {
	str := func(s string) *yaml.Node {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Style: yaml.DoubleQuotedStyle}
	}

	if t == durationType {
		return str("0s")
	}

	if names := enumNames(t); len(names) > 0 {
		zero := reflect.New(t)
		if zero.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(names[0])) == nil && zero.Elem().IsZero() { //nolint:forcetypeassert // enums read text
			return str(names[0])
		}

		return nil // no name for zero
	}

	if _, text := texts[t.String()]; text {
		return str("")
	}

	switch t.Kind() {
	case reflect.Bool:
		return scalarNode("false")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return scalarNode("0")
	default:
		return str("")
	}
}

// TestEveryZero takes every field again, with a patch that says its zero value.
func TestEveryZero(t *testing.T) {
	count, without := 0, map[string]bool{}

	eachKind(t, func(t *testing.T, kind string, empty config.Document) {
		base := full(t, empty, 0)

		for _, p := range placesOf(base) {
			if p.isIdentityPlace(base) {
				continue
			}

			zero := zeroText(p.typ)
			if zero == nil {
				without[p.typ.String()] = true

				continue
			}

			text := p.saying(t, base, zero)

			patch, err := Load([]byte(text))
			if err != nil {
				without[p.typ.String()] = true

				continue
			}

			count++

			want := mustClone(t, base)
			value := reflect.New(p.typ)

			if err := zero.Decode(value.Interface()); err != nil && p.typ.String() != "[]uint8" {
				t.Fatal(err)
			}

			p.set(reflect.ValueOf(want).Elem(), value.Elem())
			settleHostname(p, want)
			checkApplied(t, p, base, patch, want)
		}
	})

	if count < 540 {
		t.Errorf("walked %d fields, want at least 540", count)
	}

	want := map[string]bool{}
	for name := range noZero {
		want[name] = true
	}

	if diff := cmp.Diff(want, without); diff != "" {
		t.Errorf("types without a zero that a patch can say (-want +got)\n%s", diff)
	}
}
