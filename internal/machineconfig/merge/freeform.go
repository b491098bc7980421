// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
)

func (m *merging) mergeFreeForm(dst, src reflect.Value, p *plan, replace bool) error {
	patch, ok := reflect.TypeAssert[meta.Unstructured](src)
	if !ok {
		return fmt.Errorf("%v is not a free-form value", src.Type())
	}

	base, ok := reflect.TypeAssert[*meta.Unstructured](dst.Addr())
	if !ok {
		return fmt.Errorf("%v is not a free-form value", dst.Type())
	}

	if patch.Object == nil {
		return nil
	}

	if replace || base.Object == nil {
		m.set(dst, src, p)

		return nil
	}

	return m.mergeObject(base.Object, patch.Object)
}

func (m *merging) mergeObject(base, patch map[string]any) error {
	for _, key := range sortedStrings(patch) {
		m.rec.push(key)

		merged, err := m.mergeAny(base[key], patch[key])
		if err == nil {
			base[key] = merged
		}

		m.rec.pop()

		if err != nil {
			return under(key, err)
		}
	}

	return nil
}

func (m *merging) mergeAny(base, patch any) (any, error) {
	if base == nil || patch == nil {
		m.rec.mark()

		return copyAny(patch), nil
	}

	if a, b := shapeOfAny(base), shapeOfAny(patch); a != b {
		return nil, fmt.Errorf("%s cannot replace %s; if that is meant, delete the old value first", b, a)
	}

	switch patch := patch.(type) {
	case map[string]any:
		object, ok := base.(map[string]any)
		if !ok {
			return nil, errors.New("the old value is not a map with string keys")
		}

		return object, m.mergeObject(object, patch)
	case []any:
		list, ok := base.([]any)
		if !ok {
			return nil, errors.New("the old value is not a plain list")
		}

		for _, item := range patch {
			m.rec.push(itoa(len(list)))
			list = append(list, copyAny(item))
			m.rec.mark()
			m.rec.pop()
		}

		return list, nil
	default:
		m.rec.mark()

		return patch, nil
	}
}

func shapeOfAny(value any) string {
	switch reflect.TypeOf(value).Kind() {
	case reflect.Map:
		return "a map"
	case reflect.Slice:
		return "a list"
	default:
		return "a plain value"
	}
}
