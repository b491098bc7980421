// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"go.yaml.in/yaml/v4"
)

// talosRegistry is machinery's registry of document kinds, which is internal. Tests read it so that a kind that a newer
// machinery brings is tested without anybody naming it.
//
//go:linkname talosRegistry github.com/siderolabs/talos/pkg/machinery/config/internal/registry.registry
var talosRegistry *struct {
	m          sync.Mutex
	registered map[string]func(version string) config.Document
}

// minKinds is what machinery 1.14 has, so that a registry that cannot be read is noticed.
const minKinds = 90

// allKinds gives an empty document of each kind that machinery knows.
func allKinds(t testing.TB) map[string]config.Document {
	t.Helper()

	talosRegistry.m.Lock()
	defer talosRegistry.m.Unlock()

	docs := map[string]config.Document{}

	for kind, newDocument := range talosRegistry.registered {
		if kind == v1alpha1.Version {
			docs[LegacyKind] = &v1alpha1.Config{}

			continue
		}

		doc := newDocument("v1alpha1")
		if doc == nil {
			t.Fatalf("kind %s has no v1alpha1", kind)
		}

		// Every modern document embeds meta.Meta.
		m := reflect.ValueOf(doc).Elem().FieldByName("Meta")
		m.Set(reflect.ValueOf(meta.Meta{MetaAPIVersion: "v1alpha1", MetaKind: kind}))

		docs[kind] = doc
	}

	if len(docs) < minKinds {
		t.Fatalf("machinery has %d kinds, want at least %d", len(docs), minKinds)
	}

	return docs
}

// eachKind runs a test for every kind, in order.
func eachKind(t *testing.T, test func(t *testing.T, kind string, empty config.Document)) {
	t.Helper()

	docs := allKinds(t)
	for _, kind := range slices.Sorted(maps.Keys(docs)) {
		t.Run(kind, func(t *testing.T) { test(t, kind, docs[kind]) })
	}
}

// texts are two values in text form for the types that read text of a certain form. Both are valid, and no part of the
// first is in the second.
var texts = map[string][2]string{
	"cel.Expression":                  {`disk.size > 10u * GiB`, `disk.transport == "nvme"`},
	"block.ByteSize":                  {"10GiB", "20GiB"},
	"block.Size":                      {"50%", "30GiB"},
	"meta.Addr":                       {"10.1.2.3", "fd00::2"},
	"meta.Prefix":                     {"10.1.0.0/16", "fd00::/64"},
	"meta.AddrPort":                   {"10.1.2.3:51820", "[fd00::2]:51821"},
	"netip.Addr":                      {"10.1.2.3", "fd00::2"},
	"netip.Prefix":                    {"10.1.0.0/16", "fd00::/64"},
	"netip.AddrPort":                  {"10.1.2.3:51820", "[fd00::2]:51821"},
	"nethelpers.HardwareAddr":         {"00:11:22:33:44:55", "00:11:22:33:44:66"},
	"nethelpers.RoutingTable":         {"main", "local"},
	"v1alpha1.InstallDiskSizeMatcher": {">= 100GB", "<= 200GB"},
	"v1alpha1.InstallDiskType":        {"ssd", "nvme"},
	"v1alpha1.DiskSize":               {"10GB", "20GB"},
}

// fillVariant puts a value of the first (0) or second (1) variant into every field below v.
func fillVariant(t testing.TB, v reflect.Value, variant int) {
	t.Helper()

	if fillSpecial(t, v, variant) {
		return
	}

	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillVariant(t, v.Elem(), variant)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type() != reflect.TypeFor[meta.Meta]() {
				fillVariant(t, v.Field(i), variant)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte([2]string{"first", "second"}[variant]))

			return
		}

		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillVariant(t, v.Index(0), variant)
	case reflect.Map:
		elem := reflect.New(v.Type().Elem()).Elem()
		fillVariant(t, elem, variant)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("a/b").Convert(v.Type().Key()), elem)
	case reflect.String:
		v.SetString([2]string{"first", "second"}[variant])
	case reflect.Bool:
		v.SetBool(variant == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(10 + variant))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(10 + variant)) //nolint:gosec // 10 or 11
	default:
		t.Fatalf("type %v: this test cannot fill it", v.Type())
	}
}

func fillSpecial(t testing.TB, v reflect.Value, variant int) bool {
	t.Helper()

	u := &url.URL{Scheme: "https", User: url.UserPassword("user", "pass"), Host: "old:1", Path: "/old", RawQuery: "q=old", Fragment: "old"}
	if variant == 1 {
		u = &url.URL{Scheme: "http", Host: "new"}
	}

	switch x := v.Addr().Interface().(type) {
	case *meta.URL:
		x.URL = u
	case *v1alpha1.Endpoint:
		x.URL = u
	case *meta.Unstructured:
		x.Object = map[string]any{"text": fmt.Sprint("v", variant), "number": 1 + variant, "sub": map[string]any{"flag": variant == 0}}
	case *meta.ArgValue:
		*x = meta.NewArgValue(fmt.Sprint("v", variant), nil)
	case *network.PortRange:
		*x = network.PortRange{Lo: uint16(10 + variant), Hi: uint16(20 + variant)} //nolint:gosec // small
	case *time.Duration:
		*x = time.Duration(1+variant) * time.Minute
	default:
		return fillText(t, v, variant)
	}

	return true
}

// fillText fills types that read text: those of texts, and the enums, whose values are found by trying.
func fillText(t testing.TB, v reflect.Value, variant int) bool {
	t.Helper()

	if text, ok := texts[v.Type().String()]; ok {
		if err := yaml.Unmarshal([]byte(quoted(text[variant])), v.Addr().Interface()); err != nil {
			t.Fatalf("type %v: %v", v.Type(), err)
		}

		return true
	}

	reads, ok := reflect.TypeAssert[encoding.TextUnmarshaler](v.Addr())
	if !ok {
		return false
	}

	names := enumNames(v.Type())
	if len(names) == 0 {
		t.Fatalf("type %v reads text of a form that this test does not know", v.Type())
	}

	if err := reads.UnmarshalText([]byte(names[(len(names)-1+variant)%len(names)])); err != nil {
		t.Fatalf("type %v: %v", v.Type(), err)
	}

	return true
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// enumNames lists the texts of an integer type that has some, the zero value's first if it has one.
func enumNames(t reflect.Type) []string {
	if !t.ConvertibleTo(reflect.TypeFor[int64]()) {
		return nil
	}

	var names []string

	// The last two are the numbers that IEEE gives the VLAN protocols.
	for _, i := range append(slices.Collect(countTo(64)), 0x8100, 0x88a8) {
		v := reflect.New(t)
		v.Elem().Set(reflect.ValueOf(i).Convert(t))

		m, ok := reflect.TypeAssert[encoding.TextMarshaler](v)
		if !ok {
			return nil
		}

		text, err := m.MarshalText()
		if err != nil || len(text) == 0 {
			continue
		}

		back := reflect.New(t)
		if back.Interface().(encoding.TextUnmarshaler).UnmarshalText(text) == nil && back.Elem().Interface() == v.Elem().Interface() { //nolint:forcetypeassert // the caller has asked
			names = append(names, string(text))
		}
	}

	return names
}

func countTo(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

// full gives a document with every field filled.
func full(t testing.TB, empty config.Document, variant int) config.Document {
	t.Helper()

	doc := empty.Clone()
	fillVariant(t, reflect.ValueOf(doc).Elem(), variant)
	rename(doc)

	return doc
}

// rename gives a document the name "same", so that two variants have one identity.
func rename(doc config.Document) {
	if _, named := doc.(config.NamedDocument); !named {
		return
	}

	v := reflect.ValueOf(doc).Elem()
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if name == "name" {
			v.Field(i).SetString("same")
		}
	}
}

// encode writes a document with machinery's encoder.
func encode(t testing.TB, doc config.Document) string {
	t.Helper()

	b, err := encoder.NewEncoder(doc, encoder.WithComments(encoder.CommentsDisabled)).Encode()
	if err != nil {
		t.Fatalf("encode %s: %v", IDOf(doc), err)
	}

	return string(b)
}

// provider is a config of one document, without machinery's checks across documents.
func configOf(t testing.TB, docs ...config.Document) *Config {
	t.Helper()

	c := &Config{}

	for _, doc := range docs {
		clone, err := cloneDocument(doc)
		if err != nil {
			t.Fatal(err)
		}

		c.docs = append(c.docs, &document{id: IDOf(doc), doc: clone, base: doc})
	}

	return c
}

func mustLoad(t testing.TB, text string) *Patch {
	t.Helper()

	p, err := Load([]byte(text))
	if err != nil {
		t.Fatalf("load: %v\n%s", err, text)
	}

	return p
}

func mustApply(t testing.TB, c *Config, p *Patch, observe Observer) {
	t.Helper()

	if err := c.Apply(p, observe); err != nil {
		t.Fatalf("apply: %v", err)
	}
}

// decode reads YAML into plain values.
func decode(t testing.TB, text string) any {
	t.Helper()

	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}

	return value
}

// decodedLeaves lists the pointers of the scalars and of what is empty.
func decodedLeaves(value any, pointer string, out map[string]bool) {
	switch value := value.(type) {
	case map[string]any:
		for key, v := range value {
			decodedLeaves(v, pointer+"/"+escapeToken(key), out)
		}

		if len(value) == 0 {
			out[pointer] = true
		}
	case []any:
		for i, v := range value {
			decodedLeaves(v, pointer+"/"+itoa(i), out)
		}

		if len(value) == 0 {
			out[pointer] = true
		}
	default:
		out[pointer] = true
	}
}

func typeOf(value any) reflect.Type { return reflect.TypeOf(value) }
