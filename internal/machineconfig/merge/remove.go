// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
)

// checkPath refuses paths that the type cannot have, so that a mistyped
// deletion is not taken for one whose target is gone already.
func checkPath(p *plan, tokens []string, identity func(string) bool) error {
	if len(tokens) > 0 && identity(tokens[0]) {
		return under(tokens[0], errors.New("what identifies the document cannot be deleted; delete the document"))
	}

	return checkTokens(p, tokens)
}

func checkTokens(p *plan, tokens []string) error {
	for p.shape == shapePointer {
		p = p.elem
	}

	if len(tokens) == 0 || p.shape == shapeFreeForm {
		return nil
	}

	switch p.shape {
	case shapeStruct:
		f := p.field(tokens[0])
		if f == nil {
			return under(tokens[0], unknownField(p, tokens[0]))
		}

		return under(tokens[0], checkTokens(f.plan, tokens[1:]))
	case shapeMap, shapeList:
		return under(tokens[0], checkTokens(p.elem, tokens[1:]))
	default:
		return under(tokens[0], errors.New("the path leads into a plain value"))
	}
}

// remover takes something out of a document.
type remover struct {
	rec *recorder
	// selector finds the element at the end of the path, when key is set.
	key, value string
}

// remove tells whether there was something to remove.
func (r *remover) remove(v reflect.Value, p *plan, tokens []string) bool {
	switch p.shape {
	case shapePointer:
		return !v.IsNil() && r.remove(v.Elem(), p.elem, tokens)
	case shapeStruct:
		return r.removeField(v, p, tokens)
	case shapeMap:
		return r.removeEntry(v, p, tokens)
	case shapeList:
		return r.removeItem(v, p, tokens)
	case shapeFreeForm:
		object, ok := reflect.TypeAssert[*meta.Unstructured](v.Addr())
		if !ok || object.Object == nil {
			return false
		}

		_, done := r.removeAny(object.Object, tokens)

		return done
	case shapeScalar:
	}

	return false
}

func (r *remover) removeField(v reflect.Value, p *plan, tokens []string) bool {
	if len(tokens) == 0 {
		return false
	}

	f := p.field(tokens[0])
	if f == nil {
		return false
	}

	fv := f.at(v)

	if len(tokens) == 1 && r.key == "" {
		if fv.IsZero() {
			return false
		}

		fv.SetZero()

		return true
	}

	r.rec.push(f.name)
	defer r.rec.pop()

	return r.remove(fv, f.plan, tokens[1:])
}

func (r *remover) removeEntry(v reflect.Value, p *plan, tokens []string) bool {
	if len(tokens) == 0 || v.IsNil() {
		return false
	}

	key := reflect.ValueOf(tokens[0]).Convert(p.typ.Key())

	old := v.MapIndex(key)
	if !old.IsValid() {
		return false
	}

	if len(tokens) == 1 && r.key == "" {
		v.SetMapIndex(key, reflect.Value{})

		return true
	}

	r.rec.push(tokens[0])
	defer r.rec.pop()

	changed := reflect.New(p.elem.typ).Elem()
	changed.Set(old)

	if !r.remove(changed, p.elem, tokens[1:]) {
		return false
	}

	v.SetMapIndex(key, changed)

	return true
}

func (r *remover) removeItem(v reflect.Value, p *plan, tokens []string) bool {
	i := -1

	switch {
	case len(tokens) == 0 && r.key != "":
		i = selected(v, p, r.key, r.value)
	case len(tokens) > 0:
		i = itemAt(v, p, tokens[0])
	}

	if i < 0 {
		return false
	}

	if len(tokens) <= 1 && (len(tokens) == 0 || r.key == "") {
		r.rec.removed(i, v.Len())

		shorter := reflect.MakeSlice(p.typ, 0, v.Len()-1)
		shorter = reflect.AppendSlice(shorter, v.Slice(0, i))
		v.Set(reflect.AppendSlice(shorter, v.Slice(i+1, v.Len())))

		return true
	}

	r.rec.push(itoa(i))
	defer r.rec.pop()

	return r.remove(v.Index(i), p.elem, tokens[1:])
}

// selected finds the element of a list whose field has the printed value.
func selected(list reflect.Value, p *plan, key, value string) int {
	sp := p.elem
	for sp.shape == shapePointer {
		sp = sp.elem
	}

	f := sp.field(key)
	if f == nil {
		return -1
	}

	for i := range list.Len() {
		item := reflect.Indirect(list.Index(i))
		if text, ok := printed(f.at(item), f.plan); ok && text == value {
			return i
		}
	}

	return -1
}

// printed gives the text of a scalar that is set.
func printed(v reflect.Value, p *plan) (string, bool) {
	for p.shape == shapePointer {
		if v.IsNil() {
			return "", false
		}

		v, p = v.Elem(), p.elem
	}

	if p.shape != shapeScalar {
		return "", false
	}

	return p.print(v), true
}

// itemAt gives the element that a path token names: by Talos' key where the
// list has one, by index, by a field and its value ("path=/etc/hosts"), by the
// element's own value, or by the first field of the element that is text or a
// number. A list whose key is a number has no index: 2 is VLAN 2, there or not.
func itemAt(list reflect.Value, p *plan, token string) int {
	if p.list != nil {
		for _, key := range p.list.keys {
			if i := selected(list, p, key, token); i >= 0 {
				return i
			}
		}
	}

	sp := p.elem.target()

	if i, err := strconv.Atoi(token); err == nil && strconv.Itoa(i) == token {
		if i >= 0 && i < list.Len() && !p.list.numbered(sp) {
			return i
		}

		return -1
	}

	if key, value := byField(token); sp.field(key) != nil {
		return selected(list, p, key, value)
	}

	if sp.shape == shapeScalar {
		for i := range list.Len() {
			if text, ok := printed(list.Index(i), p.elem); ok && text == token {
				return i
			}
		}
	}

	for i := range sp.fields {
		if sp.fields[i].plan.shape == shapeScalar {
			return selected(list, p, sp.fields[i].name, token)
		}
	}

	return -1
}

// removeAny gives the value without what the tokens lead to.
func (r *remover) removeAny(value any, tokens []string) (any, bool) {
	switch value := value.(type) {
	case map[string]any:
		if len(tokens) == 0 {
			return value, false
		}

		old, there := value[tokens[0]]
		if !there {
			return value, false
		}

		if len(tokens) == 1 && r.key == "" {
			delete(value, tokens[0])

			return value, true
		}

		r.rec.push(tokens[0])
		defer r.rec.pop()

		changed, done := r.removeAny(old, tokens[1:])
		value[tokens[0]] = changed

		return value, done
	case []any:
		return r.removeAnyItem(value, tokens)
	default:
		return value, false
	}
}

func (r *remover) removeAnyItem(list []any, tokens []string) (any, bool) {
	i := slices.IndexFunc(list, func(item any) bool {
		object, isMap := item.(map[string]any)

		key, value := r.key, r.value
		if len(tokens) > 0 && isMap {
			key, value = byField(tokens[0])
		}

		switch {
		case key != "":
			field, there := object[key]

			return there && printAny(field) == value
		case len(tokens) == 0 || isMap:
			return false
		default:
			return fmt.Sprint(item) == tokens[0]
		}
	})

	if len(tokens) > 0 {
		if n, err := strconv.Atoi(tokens[0]); err == nil && n >= 0 && n < len(list) {
			i = n
		}
	}

	if i < 0 {
		return list, false
	}

	if len(tokens) <= 1 && (len(tokens) == 0 || r.key == "") {
		r.rec.removed(i, len(list))

		return slices.Delete(slices.Clone(list), i, i+1), true
	}

	r.rec.push(itoa(i))
	defer r.rec.pop()

	changed, done := r.removeAny(list[i], tokens[1:])
	list[i] = changed

	return list, done
}
