// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"go.yaml.in/yaml/v4"
)

// place is one scalar of a document, reached without going through a list that appends. It is found by walking Go types
// here, apart from the plans that the package works with.
type place struct {
	tokens []string
	typ    reflect.Type // without pointers
	// set changes the place in a document: to the value, or to its zero.
	set func(doc reflect.Value, value reflect.Value)
	get func(doc reflect.Value) reflect.Value
	// keys are fields of list elements that a patch must repeat for the element to be found: path to value.
	keys map[string]string
}

func (p place) pointer() string { return "/" + strings.Join(p.tokens, "/") }

// placesOf walks a filled document.
func placesOf(doc config.Document) []place {
	var out []place

	walkPlaces(reflect.TypeOf(doc).Elem(), place{
		get: func(doc reflect.Value) reflect.Value { return doc },
	}, false, &out)

	return out
}

func (p place) step(token string, get func(reflect.Value) reflect.Value) place {
	outer := p.get

	return place{
		tokens: append(slices.Clone(p.tokens), token),
		get:    func(doc reflect.Value) reflect.Value { return get(outer(doc)) },
		keys:   maps.Clone(p.keys),
	}
}

func walkPlaces(t reflect.Type, p place, inMap bool, out *[]place) {
	switch {
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct && !isWhole(t.Elem()):
		walkPlaces(t.Elem(), place{tokens: p.tokens, keys: p.keys, get: func(doc reflect.Value) reflect.Value { return p.get(doc).Elem() }}, false, out)
	case t.Kind() == reflect.Struct && !isWhole(t):
		if !inMap { // fields of a struct held by value in a map cannot be set in place
			walkFields(t, p, out)
		}
	case t.Kind() == reflect.Map:
		walkMapPlace(t, p, out)
	case t.Kind() == reflect.Slice && !isWhole(t):
		walkListPlace(t, p, out)
	default:
		p.typ = t
		for p.typ.Kind() == reflect.Pointer {
			p.typ = p.typ.Elem()
		}

		if p.set == nil {
			p.set = func(doc, value reflect.Value) { setPlace(p.get(doc), value) }
		}

		*out = append(*out, p)
	}
}

func setPlace(at, value reflect.Value) {
	if at.Kind() == reflect.Pointer {
		at.Set(reflect.New(at.Type().Elem()))
		at = at.Elem()
	}

	at.Set(value)
}

// isWhole tells the types that hold a scalar, whatever their Go kind.
func isWhole(t reflect.Type) bool {
	if _, text := texts[t.String()]; text {
		return true
	}

	switch reflect.New(t).Interface().(type) {
	case encoding.TextUnmarshaler, interface{ UnmarshalYAML(func(any) error) error }:
		return !strings.HasPrefix(t.String(), "x509.")
	}

	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

func walkFields(t reflect.Type, p place, out *[]place) {
	if t == reflect.TypeFor[meta.Unstructured]() {
		for _, token := range []string{"text", "number"} {
			sub := p.step(token, nil)
			sub.get = func(doc reflect.Value) reflect.Value {
				return reflect.ValueOf(p.get(doc).Interface().(meta.Unstructured).Object[token]) //nolint:forcetypeassert // the type is known
			}
			sub.set = func(doc, value reflect.Value) {
				p.get(doc).Interface().(meta.Unstructured).Object[token] = value.Interface() //nolint:forcetypeassert // the type is known
			}
			sub.typ = reflect.TypeOf(map[string]any{"text": "", "number": 0}[token])
			*out = append(*out, sub)
		}

		return
	}

	for i := range t.NumField() {
		sf := t.Field(i)
		name, options, _ := strings.Cut(sf.Tag.Get("yaml"), ",")

		if strings.HasPrefix(t.String(), "x509.") {
			name = strings.ToLower(sf.Name)
		}

		get := func(v reflect.Value) reflect.Value { return v.Field(i) }

		switch {
		case strings.Contains(options, "inline"):
			sub := p.step("", get)
			sub.tokens = p.tokens
			walkPlaces(sf.Type, sub, false, out)
		case strings.Contains(sf.Tag.Get("merge"), "replace"):
			// Replaced as a whole: see TestReplacedLists.
		case sf.IsExported() && name != "-":
			walkPlaces(sf.Type, p.step(name, get), false, out)
		}
	}
}

func walkMapPlace(t reflect.Type, p place, out *[]place) {
	key := reflect.ValueOf("a/b").Convert(t.Key())
	sub := p.step("a/b", func(v reflect.Value) reflect.Value { return v.MapIndex(key) })
	sub.set = func(doc, value reflect.Value) { p.get(doc).SetMapIndex(key, value) }

	if t.Elem().Kind() == reflect.Pointer {
		sub.set = nil
	}

	walkPlaces(t.Elem(), sub, true, out)
}

// walkListPlace goes into the lists of which Talos finds elements by key.
func walkListPlace(t reflect.Type, p place, out *[]place) {
	key := map[string]string{
		"v1alpha1.NetworkDeviceList":         "interface",
		"v1alpha1.VlanList":                  "vlanId",
		"v1alpha1.AdmissionPluginConfigList": "name",
		"extensions.ConfigFileList":          "mountPath",
	}[t.String()]
	if key == "" {
		return
	}

	sub := p.step("0", func(v reflect.Value) reflect.Value { return v.Index(0) })
	if sub.keys == nil {
		sub.keys = map[string]string{}
	}

	value := "first"
	if key == "vlanId" {
		value = "10"
	}

	sub.keys["/"+strings.Join(append(slices.Clone(sub.tokens), key), "/")] = value

	walkPlaces(t.Elem(), sub, false, out)
}

// patchText writes a patch that says the places, and what identifies document and list elements.
func patchText(t testing.TB, doc config.Document, values map[string]*yaml.Node, tokens map[string][]string) string {
	t.Helper()

	root := &yaml.Node{Kind: yaml.MappingNode}

	if doc.Kind() != "v1alpha1" {
		put(root, []string{"apiVersion"}, scalarNode("v1alpha1"))
		put(root, []string{"kind"}, scalarNode(doc.Kind()))

		if named, ok := doc.(config.NamedDocument); ok {
			put(root, []string{"name"}, scalarNode(named.Name()))
		}
	}

	for _, pointer := range slices.Sorted(maps.Keys(values)) {
		put(root, tokens[pointer], values[pointer])
	}

	b, err := yaml.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}

	return string(b)
}

func scalarNode(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: value}
}

// put sets a value in a tree of nodes; the token "0" makes a list.
func put(node *yaml.Node, tokens []string, value *yaml.Node) {
	for i, token := range tokens {
		var next *yaml.Node

		if token == "0" {
			node.Kind = yaml.SequenceNode
			if len(node.Content) == 0 {
				node.Content = []*yaml.Node{{Kind: yaml.MappingNode}}
			}

			next = node.Content[0]
		} else {
			for j := 0; j+1 < len(node.Content); j += 2 {
				if node.Content[j].Value == token {
					next = node.Content[j+1]
				}
			}

			if next == nil {
				next = &yaml.Node{Kind: yaml.MappingNode}
				node.Content = append(node.Content, scalarNode(token), next)
			}
		}

		if i == len(tokens)-1 {
			*next = *value
		}

		node = next
	}
}

// saying gives the patch that says one place.
func (p place) saying(t testing.TB, doc config.Document, value *yaml.Node) string {
	t.Helper()

	values, tokens := map[string]*yaml.Node{}, map[string][]string{}
	for key, text := range p.keys {
		values[key], tokens[key] = scalarNode(text), strings.Split(key[1:], "/")
	}

	values[p.pointer()], tokens[p.pointer()] = value, p.tokens

	return patchText(t, doc, values, tokens)
}

// isIdentityPlace tells the places that a patch must repeat, and so cannot change.
func (p place) isIdentityPlace(doc config.Document) bool {
	_, named := doc.(config.NamedDocument)
	_, isKey := p.keys[p.pointer()]

	return isKey || (len(p.tokens) == 1 && IDOf(doc).Kind != LegacyKind && isIdentity(IDOf(doc), named)(p.tokens[0]))
}

// wireOf gives a value as the encoded config writes it.
func wireOf(t testing.TB, value reflect.Value) *yaml.Node {
	t.Helper()

	if value.Kind() == reflect.Slice && value.Type().String() == "[]uint8" { // only in the x509 structs
		value = reflect.ValueOf(map[string]string{"second": "c2Vjb25k"}[string(value.Bytes())])
	}

	p := reflect.New(value.Type())
	p.Elem().Set(value)

	b, err := yaml.Marshal(p.Interface())
	if err != nil {
		t.Fatal(err)
	}

	var node yaml.Node
	if err := yaml.Unmarshal(b, &node); err != nil {
		t.Fatal(err)
	}

	return node.Content[0]
}

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
