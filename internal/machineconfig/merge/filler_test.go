// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/cel"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
)

// filler fills a document at random. Without lossy it leaves out the types that machinery merges lossily.
type filler struct {
	t     testing.TB
	rand  *rand.Rand
	lossy bool
	// names makes the keys of list elements unique, so that no two elements of one list have the same.
	names int
}

var lossyTypes = map[reflect.Type]bool{
	reflect.TypeFor[cel.Expression](): true,
	reflect.TypeFor[block.ByteSize](): true,
	reflect.TypeFor[block.Size]():     true,
	reflect.TypeFor[meta.URL]():       true,
	endpointType:                      true,
}

func (f *filler) document(empty config.Document) config.Document {
	doc := empty.Clone()
	f.fill(reflect.ValueOf(doc).Elem())
	rename(doc)

	if h, ok := doc.(interface{ Kind() string }); ok && h.Kind() == "HostnameConfig" {
		reflect.ValueOf(doc).Elem().FieldByName("ConfigAuto").SetZero()
	}

	return doc
}

func (f *filler) skip() bool { return f.rand.IntN(3) == 0 }

func (f *filler) fill(v reflect.Value) {
	t := v.Type()

	switch {
	case lossyTypes[t] && !f.lossy, t == reflect.TypeFor[meta.Meta]():
		return
	case t == freeFormType:
		v.Set(reflect.ValueOf(meta.Unstructured{Object: f.object(2)}))

		return
	}

	switch {
	case t.Kind() == reflect.Pointer:
		if !f.skip() && (f.lossy || !lossyTypes[t.Elem()]) {
			v.Set(reflect.New(t.Elem()))
			f.fill(v.Elem())
		}
	case isWhole(t) || t == durationType:
		fillVariant(f.t, v, f.rand.IntN(2))
	case t.Kind() == reflect.Struct:
		for i := range v.NumField() {
			// machinery compares selectors of legacy interfaces by pointer, and sets each bool that is not a pointer
			if t.Field(i).IsExported() && t.Field(i).Name != "DeviceSelector" && (v.Field(i).Kind() == reflect.Struct || noZero[v.Field(i).Type().String()] != "" || !f.skip()) {
				f.fill(v.Field(i))
			}
		}

		f.identify(v)
	case t.Kind() == reflect.Slice:
		n := f.rand.IntN(3)
		v.Set(reflect.MakeSlice(t, n, n))

		for i := range n {
			f.fill(v.Index(i))

			if e := v.Index(i); e.Kind() == reflect.Pointer && e.IsNil() {
				e.Set(reflect.New(t.Elem().Elem()))
				f.fill(e.Elem())
			}
		}
	case t.Kind() == reflect.Map:
		f.fillMap(v)
	default:
		fillVariant(f.t, v, f.rand.IntN(2))
	}
}

func (f *filler) fillMap(v reflect.Value) {
	v.Set(reflect.MakeMap(v.Type()))

	for range f.rand.IntN(4) {
		elem := reflect.New(v.Type().Elem()).Elem()
		f.fill(elem)

		if elem.Kind() == reflect.Pointer && elem.IsNil() {
			continue
		}

		v.SetMapIndex(reflect.ValueOf(fmt.Sprint("k/", f.rand.IntN(4))).Convert(v.Type().Key()), elem)
	}
}

// identify sets the key of an element of a keyed list.
func (f *filler) identify(v reflect.Value) {
	f.names++

	for _, rule := range listRules {
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
			if rule.keys[0] != name || !keyedElement(v.Type()) {
				continue
			}

			if fv := v.Field(i); fv.Kind() == reflect.String {
				fv.SetString(fmt.Sprint("e", f.names))
			} else if fv.CanUint() {
				fv.SetUint(uint64(f.names)) //nolint:gosec // small
			}
		}
	}
}

func keyedElement(t reflect.Type) bool {
	for list := range listRules {
		if list.Elem() == t || (list.Elem().Kind() == reflect.Pointer && list.Elem().Elem() == t) {
			return true
		}
	}

	return false
}

// object makes free-form values whose types depend on the key alone, since machinery refuses others.
func (f *filler) object(depth int) map[string]any {
	object := map[string]any{}

	for range f.rand.IntN(4) + 1 {
		switch f.rand.IntN(5) {
		case 0:
			object["text"] = fmt.Sprint("t", f.rand.IntN(3))
		case 1:
			object["number"] = f.rand.IntN(3) + 1
		case 2:
			object["flag/~"] = f.rand.IntN(2) == 0
		case 3:
			object["list"] = []any{"a", f.rand.IntN(3)}
		case 4:
			if depth > 0 {
				object["sub"] = f.object(depth - 1)
			}
		}
	}

	return object
}

func seeded(t testing.TB, seed int, lossy bool) *filler {
	t.Helper()

	return &filler{t: t, rand: rand.New(rand.NewPCG(uint64(seed), 7)), lossy: lossy} //nolint:gosec // a repeatable order is the point
}
