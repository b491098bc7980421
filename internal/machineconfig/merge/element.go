// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// ElementPointer gives the JSON pointer by which [Config.Delete] finds the
// element of a list that `$patch: delete` selects by the value of one of its
// fields; list is the pointer of the list. In a list that Talos merges by that
// field it ends in the value, else in "field=value".
func ElementPointer(id ID, list, key, value string) (string, error) {
	tokens, err := splitPointer(list)
	if err != nil {
		return "", err
	}

	empty, err := head{id: id, apiVersion: "v1alpha1", legacy: id.Kind == LegacyKind}.prototype()
	if err != nil {
		return "", err
	}

	p, err := planFor(reflect.TypeOf(empty).Elem())
	if err != nil {
		return "", err
	}

	for _, token := range tokens {
		if p = p.below(token); p == nil {
			return "", errors.New("there is no such list")
		}
	}

	if p = p.target(); p.shape == shapeList {
		if f := p.elem.target().field(key); f == nil {
			return "", fmt.Errorf("elements of this list have no field %q to select one by", key)
		}

		if p.list != nil && slices.Contains(p.list.keys, key) && value != "" {
			return list + "/" + escapeToken(value), nil
		}
	} else if p.shape != shapeFreeForm {
		return "", errors.New("there is no list")
	}

	return list + "/" + escapeToken(key+"="+value), nil
}

// target is what a pointer points to.
func (p *plan) target() *plan {
	for p.shape == shapePointer {
		p = p.elem
	}

	return p
}

// below is the plan of what a token leads to, or nil. Free-form values are free-form below too.
func (p *plan) below(token string) *plan {
	switch p = p.target(); p.shape {
	case shapeStruct:
		if f := p.field(token); f != nil {
			return f.plan
		}
	case shapeMap, shapeList:
		return p.elem
	case shapeFreeForm:
		return p
	case shapeScalar, shapePointer:
	}

	return nil
}

// byField takes a token apart that names an element of a list by one of its
// fields: "path=/etc/hosts". The key of any other token is empty.
func byField(token string) (key, value string) {
	key, value, ok := strings.Cut(token, "=")
	if !ok {
		return "", ""
	}

	return key, value
}

// numbered says that the elements have a number for their key.
func (r *listRule) numbered(element *plan) bool {
	return r != nil && slices.ContainsFunc(r.keys, func(key string) bool {
		f := element.field(key)

		return f != nil && f.plan.target().typ.ConvertibleTo(reflect.TypeFor[int]())
	})
}
