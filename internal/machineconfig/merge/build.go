// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"reflect"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
)

// Build makes a patch of documents built in Go. Such a document says what is
// not zero in it, so that an explicit zero needs a pointer field or Load. The
// documents are copied.
func Build(docs ...config.Document) (*Patch, error) {
	patch := &Patch{}

	for i, doc := range docs {
		v := reflect.ValueOf(doc)
		if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
			return nil, &Error{Index: i, Err: errors.New("want a Talos document")}
		}

		id := IDOf(doc)

		p, err := planFor(v.Elem().Type())
		if err != nil {
			return nil, &Error{Index: i, ID: id, Err: err}
		}

		clone, err := cloneDocument(doc)
		if err != nil {
			return nil, &Error{Index: i, ID: id, Err: err}
		}

		s := saidBy(v.Elem(), p)
		if s == nil {
			s = everything
		}

		patch.documents = append(patch.documents, &patchDocument{index: i, id: id, plan: p, doc: clone, said: s})
	}

	return patch, nil
}

// saidBy records what a value built in Go says: what is not zero.
func saidBy(v reflect.Value, p *plan) *said {
	switch p.shape {
	case shapePointer:
		return saidByPointer(v, p)
	case shapeStruct:
		return saidByStruct(v, p)
	case shapeMap, shapeList:
		if v.IsNil() {
			return nil
		}

		return saidByParts(v, p)
	case shapeScalar, shapeFreeForm:
	}

	if isZero(v) {
		return nil
	}

	return everything
}

// saidByPointer says a pointer that is set, whatever it points to.
func saidByPointer(v reflect.Value, p *plan) *said {
	if v.IsNil() {
		return nil
	}

	if s := saidBy(v.Elem(), p.elem); s != nil {
		return s
	}

	return everything
}

func saidByStruct(v reflect.Value, p *plan) *said {
	if v.IsZero() {
		return nil
	}

	s := &said{}

	for i := range p.fields {
		if fs := saidBy(p.fields[i].at(v), p.fields[i].plan); fs != nil {
			s.fields = append(s.fields, saidField{index: i, said: fs})
		}
	}

	return s
}

func saidByParts(v reflect.Value, p *plan) *said {
	part := func(v reflect.Value) *said {
		if s := saidBy(v, p.elem); s != nil {
			return s
		}

		return everything
	}

	s := &said{}

	if p.shape == shapeMap {
		for _, key := range sortedKeys(v) {
			s.keys = append(s.keys, saidKey{key: key.String(), said: part(v.MapIndex(key))})
		}

		return s
	}

	for i := range v.Len() {
		s.items = append(s.items, part(v.Index(i)))
	}

	return s
}
