// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"reflect"
)

// listRule is how a list of objects merges by key.
type listRule struct {
	// keys are the fields that identify an element; the first one that the
	// patch's element sets decides.
	keys []string
	// zeroKey says that an element without a key is one with the zero key.
	zeroKey bool
	// replace says that an element with a known key replaces the old one.
	replace bool
}

// merging lays one document over another. Without a recorder it keeps no paths.
type merging struct {
	rec *recorder
}

// merge lays what s says of src over dst, which can be set.
func (m *merging) merge(dst, src reflect.Value, p *plan, s *said, replace bool) error {
	switch p.shape {
	case shapePointer:
		if src.IsNil() {
			return nil
		}

		// A pointer to a scalar is replaced, not written through, so that one
		// that a copy shares with its original is harmless.
		if dst.IsNil() || p.elem.shape == shapeScalar {
			m.set(dst, src, p)

			return nil
		}

		return m.merge(dst.Elem(), src.Elem(), p.elem, s, replace)
	case shapeList:
		return m.mergeList(dst, src, p, s, replace)
	case shapeMap:
		return m.mergeMap(dst, src, p, s, replace)
	case shapeStruct:
		if replace {
			m.set(dst, src, p)

			return nil
		}

		return m.mergeStruct(dst, src, p, s)
	case shapeFreeForm:
		return m.mergeFreeForm(dst, src, p, replace)
	case shapeScalar:
	}

	m.set(dst, src, p)

	return nil
}

func (m *merging) set(dst, src reflect.Value, p *plan) {
	dst.Set(cloneValue(src, p))
	m.rec.mark()
}

func (m *merging) mergeStruct(dst, src reflect.Value, p *plan, s *said) error {
	for _, fs := range s.fields {
		f := &p.fields[fs.index]

		m.rec.push(f.name)
		err := m.merge(f.at(dst), f.at(src), f.plan, fs.said, f.replace)
		m.rec.pop()

		if err != nil {
			return under(f.name, err)
		}
	}

	return nil
}

func (m *merging) mergeMap(dst, src reflect.Value, p *plan, s *said, replace bool) error {
	if src.IsNil() {
		return nil
	}

	if replace || dst.IsNil() {
		m.set(dst, src, p)

		return nil
	}

	for _, ks := range s.keys {
		key := reflect.ValueOf(ks.key).Convert(p.typ.Key())

		value := src.MapIndex(key)
		if !value.IsValid() {
			return under(ks.key, fmt.Errorf("the value was not read"))
		}

		m.rec.push(ks.key)
		err := m.mergeEntry(dst, key, value, p.elem, ks.said)
		m.rec.pop()

		if err != nil {
			return under(ks.key, err)
		}
	}

	return nil
}

func (m *merging) mergeEntry(dst, key, value reflect.Value, elem *plan, s *said) error {
	old := dst.MapIndex(key)

	if !old.IsValid() || elem.shape == shapeScalar {
		dst.SetMapIndex(key, cloneValue(value, elem))
		m.rec.mark()

		return nil
	}

	merged := reflect.New(elem.typ).Elem()
	merged.Set(old)

	if err := m.merge(merged, value, elem, s, false); err != nil {
		return err
	}

	dst.SetMapIndex(key, merged)

	return nil
}

func (m *merging) mergeList(dst, src reflect.Value, p *plan, s *said, replace bool) error {
	if src.IsNil() {
		return nil
	}

	if replace {
		m.set(dst, src, p)

		return nil
	}

	if dst.IsNil() {
		dst.Set(reflect.MakeSlice(p.typ, 0, src.Len()))
	}

	for i := range src.Len() {
		item := src.Index(i)

		if p.list != nil {
			if j := p.list.find(dst, item, p.elem); j >= 0 {
				if err := m.mergeItem(dst.Index(j), item, p, s.item(i), j); err != nil {
					return err
				}

				continue
			}
		}

		m.rec.push(itoa(dst.Len()))
		dst.Set(reflect.Append(dst, cloneValue(item, p.elem)))
		m.rec.mark()
		m.rec.pop()
	}

	return nil
}

func (m *merging) mergeItem(dst, item reflect.Value, p *plan, s *said, index int) error {
	m.rec.push(itoa(index))
	defer m.rec.pop()

	if p.list.replace {
		m.set(dst, item, p.elem)

		return nil
	}

	return under(itoa(index), m.merge(dst, item, p.elem, s, false))
}

func (s *said) item(i int) *said {
	if i < len(s.items) {
		return s.items[i]
	}

	return everything
}

// find gives the index of the element of list that has item's key, or -1.
func (r *listRule) find(list, item reflect.Value, p *plan) int {
	sp := p
	if p.shape == shapePointer {
		sp = p.elem
	}

	for _, name := range r.keys {
		key := sp.field(name).at(reflect.Indirect(item))
		if key.IsZero() && !r.zeroKey {
			continue
		}

		for i := range list.Len() {
			if reflect.DeepEqual(sp.field(name).at(reflect.Indirect(list.Index(i))).Interface(), key.Interface()) {
				return i
			}
		}

		return -1
	}

	return -1
}
