// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

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
