// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"go.yaml.in/yaml/v4"
)

// cloneDocument copies a document deeply. The legacy document is copied field by
// field, because its own copy shares annotations, the endpoint's URL and more
// with the original. Machinery's copy panics on free-form values that it does
// not know, such as a YAML timestamp; that is an error here.
func cloneDocument(doc config.Document) (clone config.Document, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the document has a value that cannot be copied, such as an unquoted date; quote it")
		}
	}()

	legacy, ok := doc.(*v1alpha1.Config)
	if !ok {
		return doc.Clone(), nil
	}

	v := reflect.ValueOf(legacy)

	p, err := planFor(v.Type())
	if err != nil {
		return nil, err
	}

	return cloneValue(v, p).Interface().(config.Document), nil //nolint:forcetypeassert // a copy has the type of its original
}

func copyURL(u *url.URL) *url.URL {
	if u == nil {
		return nil
	}

	c := *u
	if u.User != nil {
		user := *u.User
		c.User = &user
	}

	return &c
}

var (
	urlType      = reflect.TypeFor[meta.URL]()
	endpointType = reflect.TypeFor[v1alpha1.Endpoint]()
)

// cloneValue copies a value of a patch, so that the patch is never aliased.
func cloneValue(v reflect.Value, p *plan) reflect.Value {
	switch p.shape {
	case shapePointer:
		if v.IsNil() {
			return v
		}

		c := reflect.New(p.elem.typ)
		c.Elem().Set(cloneValue(v.Elem(), p.elem))

		return c
	case shapeList:
		if v.IsNil() {
			return v
		}

		c := reflect.MakeSlice(p.typ, v.Len(), v.Len())
		for i := range v.Len() {
			c.Index(i).Set(cloneValue(v.Index(i), p.elem))
		}

		return c
	case shapeMap:
		if v.IsNil() {
			return v
		}

		c := reflect.MakeMapWithSize(p.typ, v.Len())
		for it := v.MapRange(); it.Next(); {
			c.SetMapIndex(it.Key(), cloneValue(it.Value(), p.elem))
		}

		return c
	case shapeStruct:
		c := reflect.New(p.typ).Elem()
		c.Set(v)

		for i := range p.fields {
			if f := &p.fields[i]; f.plan.shape != shapeScalar || f.plan.holdsReference() {
				f.at(c).Set(cloneValue(f.at(v), f.plan))
			}
		}

		return c
	case shapeFreeForm:
		object, _ := reflect.TypeAssert[meta.Unstructured](v)
		if object.Object == nil {
			return v
		}

		return reflect.ValueOf(meta.Unstructured{Object: copyAny(object.Object).(map[string]any)}) //nolint:forcetypeassert // a map stays a map
	case shapeScalar:
	}

	return cloneScalar(v, p)
}

// holdsReference tells the scalars of which a plain copy would be an alias.
func (p *plan) holdsReference() bool {
	return p.typ.Kind() == reflect.Slice || p.typ == urlType || p.typ == endpointType
}

func cloneScalar(v reflect.Value, p *plan) reflect.Value {
	switch {
	case p.typ == urlType:
		return reflect.ValueOf(meta.URL{URL: copyURL(v.Interface().(meta.URL).URL)}) //nolint:forcetypeassert // the type is known
	case p.typ == endpointType:
		return reflect.ValueOf(v1alpha1.Endpoint{URL: copyURL(v.Interface().(v1alpha1.Endpoint).URL)}) //nolint:forcetypeassert // the type is known
	case p.typ.Kind() == reflect.Slice && !v.IsNil():
		c := reflect.MakeSlice(p.typ, v.Len(), v.Len())
		reflect.Copy(c, v)

		return c
	default:
		return v
	}
}

func copyAny(value any) any {
	switch value := value.(type) {
	case map[string]any:
		c := make(map[string]any, len(value))
		for k, v := range value {
			c[k] = copyAny(v)
		}

		return c
	case []any:
		c := make([]any, len(value))
		for i, v := range value {
			c[i] = copyAny(v)
		}

		return c
	default:
		return value
	}
}

func sortedKeys(v reflect.Value) []reflect.Value {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })

	return keys
}

// isZero tells what YAML's omitempty leaves out.
func isZero(v reflect.Value) bool {
	if z, ok := reflect.TypeAssert[yaml.IsZeroer](v); ok {
		if v.Kind() == reflect.Pointer && v.IsNil() {
			return true
		}

		return z.IsZero()
	}

	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && !isZero(v.Field(i)) {
				return false
			}
		}

		return true
	default:
		return v.IsZero()
	}
}
