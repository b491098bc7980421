// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
)

// Mask is what stands for a secret value wherever one would be printed.
const Mask = "********"

// Value is the printable value of a leaf, as the encoded config shows it ("{}"
// and "[]" for what is empty, "null" for a field that Talos writes without a
// value). A secret one prints as Mask in every format, JSON included; only
// Reveal gives it away. Values can be compared with ==.
type Value struct {
	text   string
	secret bool
}

// Secret tells whether the value must not be shown.
func (v Value) Secret() bool { return v.secret }

// Reveal gives the value itself, a secret too. It is for output that the user
// asked to have secrets in, and for comparisons.
func (v Value) Reveal() string { return v.text }

// String gives the value, or Mask for a secret one.
func (v Value) String() string {
	if v.secret {
		return Mask
	}

	return v.text
}

// Format implements fmt.Formatter: no verb shows a secret.
func (v Value) Format(state fmt.State, verb rune) {
	if verb == 'q' || (verb == 'v' && state.Flag('#')) {
		_, _ = state.Write([]byte(strconv.Quote(v.String())))

		return
	}

	_, _ = state.Write([]byte(v.String()))
}

// MarshalText implements encoding.TextMarshaler, for JSON and YAML.
func (v Value) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Leaf is one scalar, or one empty map or list, of the encoded config. A
// component's argument with several values (extraArgs) is one leaf.
type Leaf struct {
	ID ID
	// Pointer is the JSON pointer within the document.
	Pointer string
	Value   Value
}

// Leaves lists every leaf of the config as it is encoded, in the order of the
// documents and of their fields; the keys of maps are sorted.
func (c *Config) Leaves() []Leaf {
	var leaves []Leaf
	for _, d := range c.docs {
		leaves = append(leaves, d.flat()...)
	}

	return leaves
}

// LeavesOf lists every leaf of one document as it is encoded.
func LeavesOf(doc config.Document) []Leaf { return flatten(IDOf(doc), doc, nil) }

// flat gives the document's leaves, worked out again only after a change. The
// result is shared and is not changed.
func (d *document) flat() []Leaf {
	if d.leaves == nil {
		d.leaves = flatten(d.id, d.doc, d.marks)
	}

	return d.leaves
}

func flatten(id ID, doc config.Document, marked marks) []Leaf {
	root := reflect.ValueOf(doc).Elem()

	p, err := planFor(root.Type())
	if err != nil {
		return nil
	}

	f := flattener{id: id, leaves: make([]Leaf, 0, 16), marks: marked}
	f.value(root, p, secretsOf(doc))

	return f.leaves
}

type flattener struct {
	id     ID
	path   []byte
	leaves []Leaf
	marks  marks
	// items says to list an argument with several values by its items.
	items bool
}

func (f *flattener) leaf(text string, secrets *secretNode) {
	// An empty secret is none, and to mask it would tell that it is set.
	secret := text != "" && (secrets.isSecret() && !secrets.tells(text) || HasUserInfo(text) || HasCredentialQuery(text))
	pointer := string(f.path)

	f.leaves = append(f.leaves, Leaf{
		ID:      f.id,
		Pointer: pointer,
		Value:   Value{text: text, secret: secret || text != "" && f.marks.has(pointer, text)},
	})
}

// under runs visit with one more token on the path.
func (f *flattener) under(token string, visit func()) {
	length := len(f.path)
	f.path = append(f.path, '/')
	f.path = append(f.path, escapeToken(token)...)

	visit()

	f.path = f.path[:length]
}

func (f *flattener) value(v reflect.Value, p *plan, secrets *secretNode) {
	switch p.shape {
	case shapePointer:
		if v.IsNil() {
			f.leaf("null", nil)

			return
		}

		f.value(v.Elem(), p.elem, secrets)
	case shapeStruct:
		f.structure(v, p, secrets)
	case shapeMap:
		if v.Len() == 0 {
			f.leaf("{}", nil)

			return
		}

		for _, key := range sortedKeys(v) {
			f.under(key.String(), func() { f.value(v.MapIndex(key), p.elem, secrets.element(key.String())) })
		}
	case shapeList:
		if v.Len() == 0 {
			f.leaf("[]", nil)

			return
		}

		for i := range v.Len() {
			f.under(itoa(i), func() { f.value(v.Index(i), p.elem, secrets.element("")) })
		}
	case shapeFreeForm:
		object, _ := reflect.TypeAssert[meta.Unstructured](v)
		f.any(object.Object, secrets)
	case shapeScalar:
		f.scalar(v, p, secrets)
	}
}

func (f *flattener) scalar(v reflect.Value, p *plan, secrets *secretNode) {
	text := p.print(v)

	if !f.items {
		f.leaf(text, secrets)

		return
	}

	items, list := argumentItems(v)
	if !list {
		f.leaf(text, secrets)

		return
	}

	for i := range max(items, 1) {
		f.under(itoa(i), func() { f.leaf(text, secrets) })
	}
}

func (f *flattener) structure(v reflect.Value, p *plan, secrets *secretNode) {
	before := len(f.leaves)

	for i := range p.fields {
		fp := &p.fields[i]
		fv := fp.at(v)

		if fp.omitEmpty && isZero(fv) {
			continue
		}

		f.under(fp.name, func() { f.value(fv, fp.plan, secrets.child(fp.name)) })
	}

	if len(f.leaves) == before {
		f.leaf("{}", nil)
	}
}

func (f *flattener) any(value any, secrets *secretNode) {
	switch value := value.(type) {
	case map[string]any:
		if len(value) == 0 {
			f.leaf("{}", nil)

			return
		}

		for _, key := range sortedStrings(value) {
			f.under(key, func() { f.any(value[key], secrets.element(key)) })
		}
	case []any:
		if len(value) == 0 {
			f.leaf("[]", nil)

			return
		}

		for i, item := range value {
			f.under(itoa(i), func() { f.any(item, secrets.element("")) })
		}
	default:
		f.leaf(printAny(value), secrets)
	}
}

func sortedStrings(m map[string]any) []string {
	return slices.Sorted(maps.Keys(m))
}
