// SPDX-License-Identifier: Apache-2.0

package acceptance_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"k8s.io/apimachinery/pkg/util/intstr"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
	"github.com/maesh-dev/ichor/internal/codegen/history"
	"github.com/maesh-dev/ichor/internal/codegen/load"
	"github.com/maesh-dev/ichor/internal/codegen/model"
	"github.com/maesh-dev/ichor/internal/codegen/tables"
)

// buildModel runs the generator up to its last step.
func buildModel(t *testing.T) *model.API {
	t.Helper()

	catalog, err := load.Load(t.Context(), tables.Machinery(moduleDir(t)))
	if err != nil {
		t.Fatalf("load: %v", err)
	}

	decisions := tables.Talos()
	decisions.Since = firstVersions(t).Fields()

	api, err := model.Build(catalog, decisions)
	if err != nil {
		t.Fatalf("model: %v", err)
	}

	return api
}

// firstVersions reads all releases of machinery.
func firstVersions(t *testing.T) *history.Table {
	t.Helper()

	table, err := history.Make(t.Context(), tables.Releases(moduleDir(t)), tables.FormChanges())
	if err != nil {
		t.Fatalf("history: %v", err)
	}

	return table
}

// filler sets every field of a document. The turn chooses among the permitted values, so that all of them are used.
type filler struct {
	scalars map[string]*model.Scalar // by Go name
	structs map[string]*model.Struct // by Go name
	turn    int
	texts   int // how many texts were made up so far
	turns   int // how many turns it takes to use every value
	sources sources
}

// fillers makes fillers for what the model describes.
func fillers(api *model.API) func() *filler {
	scalars, structs := map[string]*model.Scalar{}, map[string]*model.Struct{}

	for _, s := range api.Scalars {
		scalars[s.Name] = s
	}

	for _, s := range api.Structs {
		structs[s.Name] = s
	}

	return func() *filler { return &filler{scalars: scalars, structs: structs, turns: 2, sources: sources{}} }
}

func (f *filler) pick(values []string) string {
	f.turns = max(f.turns, len(values))

	return values[f.turn%len(values)]
}

func (f *filler) fill(t *testing.T, v reflect.Value) {
	t.Helper()

	if scalar, ok := f.scalars[v.Type().Name()]; ok {
		f.fillScalar(t, v, scalar)

		return
	}

	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(t, v.Elem())
	case reflect.Struct:
		f.fillStruct(t, v)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte{1, 2, 3})

			return
		}

		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		f.fill(t, v.Index(0))
	case reflect.Map:
		elem := reflect.New(v.Type().Elem()).Elem()
		f.fill(t, elem)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key"), elem)
	case reflect.String:
		// No two alike: Talos refuses a veth pair whose ends have one name.
		f.texts++
		v.SetString("text" + strconv.Itoa(f.texts))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(7)
	default:
		t.Fatalf("no value for a %s", v.Type())
	}
}

func (f *filler) fillStruct(t *testing.T, v reflect.Value) {
	t.Helper()

	for i := range v.NumField() {
		field := v.Type().Field(i)
		if _, refused := field.Tag.Lookup("refused"); refused {
			continue
		}

		_, refers := field.Tag.Lookup("resolves")

		switch described := f.field(v.Type().Name(), field.Name); {
		case refers:
			f.fillReference(t, v, i)
		case len(described.Enum) > 0:
			value := f.pick(described.Enum)
			v.Field(i).Set(reflect.ValueOf(&value))
		default:
			f.fill(t, v.Field(i))
		}
	}

	f.choose(v)
}

// field is what the model says of a field, nothing for a type that is not generated.
func (f *filler) field(structName, name string) model.Field {
	if s := f.structs[structName]; s != nil {
		for _, field := range s.Fields {
			if field.Name == name {
				return *field
			}
		}
	}

	return model.Field{}
}

// choose leaves of a field whose content follows from another one what belongs to one of that one's values.
func (f *filler) choose(v reflect.Value) {
	for i := range v.NumField() {
		choice := f.field(v.Type().Name(), v.Type().Field(i).Name).Choice
		if choice == nil {
			continue
		}

		kinds, fields := map[string]string{}, map[string][]string{}

		var names []string

		for _, of := range choice.Of {
			for _, name := range of.For {
				names = append(names, name)
				kinds[name], fields[name] = of.Kind, of.Fields
			}
		}

		name := f.pick(names)
		setText(byJSON(v, choice.By), name)

		content := v.Field(i).Elem()
		for j := range content.NumField() {
			switch wire := jsonName(content.Type().Field(j)); {
			case wire == "kind":
				setText(content.Field(j), kinds[name])
			case wire != "apiVersion" && !slices.Contains(fields[name], wire):
				content.Field(j).SetZero()
			}
		}
	}
}

func setText(v reflect.Value, text string) {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}

	v.SetString(text)
}

func byJSON(v reflect.Value, name string) reflect.Value {
	for i := range v.NumField() {
		if jsonName(v.Type().Field(i)) == name {
			return v.Field(i)
		}
	}

	return reflect.Value{}
}

func (f *filler) fillScalar(t *testing.T, v reflect.Value, scalar *model.Scalar) {
	t.Helper()

	value := f.pick(append(append([]string{}, scalar.Enum...), scalar.Examples...))

	switch scalar.Base {
	case model.IntOrString, model.Number:
		v.Set(reflect.ValueOf(intstr.FromString(value)).Convert(v.Type()))
	case model.Integer:
		number, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			t.Fatalf("%s: example %q: %v", scalar.Name, value, err)
		}

		v.SetInt(number)
	case model.Arguments:
		v.Set(reflect.ValueOf([]string{value, "second"}[:1+f.turn%2]).Convert(v.Type()))
	case model.Bytes:
		v.SetBytes([]byte(value))
	default:
		v.SetString(value)
	}
}

// rewritten are the values that machinery writes in another form than it was given, with that form; nil is nothing.
var rewritten = map[string]any{
	// The zero value of an enum is what Talos takes for an absent field, so it writes nothing.
	"RAIDArrayConfig metadata 1.0":                nil,
	"ResolverConfig nameservers[0].protocol Do53": nil,
	"RoutingRuleConfig action unspec":             nil,
	"UserVolumeConfig filesystem.type none":       nil,
	// DiskSize becomes a number of bytes where no decimal unit fits.
	"Config machine.disks[0].partitions[0].size 10GiB": float64(10 << 30),
}

// TestRoundTripOfMaximalDocuments takes typed -> machinery -> typed with every field set, to every value that is listed.
func TestRoundTripOfMaximalDocuments(t *testing.T) {
	server := newAPIServer(t)
	newFiller := fillers(buildModel(t))

	for _, kind := range offeredKinds() {
		t.Run(kind, func(t *testing.T) {
			f := newFiller()

			for ; f.turn < f.turns; f.turn++ {
				doc := &machineconfigv1alpha1.Document{Kind: machineconfigv1alpha1.DocumentKind(kind)}
				f.fill(t, reflect.ValueOf(doc).Elem().FieldByName(kind))

				asObject, err := json.Marshal(doc)
				if err != nil {
					t.Fatalf("encode: %v", err)
				}

				if errs := server.validate(t, string(asObject)); len(errs) > 0 {
					t.Errorf("the API server refuses what Talos permits: %v", errs.ToAggregate())
				}

				want, err := doc.TalosJSON(f.sources.value)
				if err != nil {
					t.Fatalf("TalosJSON: %v", err)
				}

				redactsReferencesOnly(t, doc, want)

				written := toJSON(t, canonical(t, readOne(t, want)))
				compareLeaves(t, kind, want, written)

				again, err := fromTalosJSON(withoutRefused(t, written))
				if err != nil {
					t.Fatalf("read back: %v\n%s", err, written)
				}

				if again.Kind != doc.Kind || again.Name() != doc.Name() {
					t.Errorf("got %s %q back, want %s %q", again.Kind, again.Name(), doc.Kind, doc.Name())
				}
			}
		})
	}
}

// encodeJSON is a config as machinery writes it, in JSON.
func encodeJSON(t *testing.T, c config.Provider) []byte {
	t.Helper()

	out, err := c.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		t.Fatalf("encode: %v", err)
	}

	return toJSON(t, out)
}

// withoutRefused removes the refused fields, which machinery writes even if they are empty.
func withoutRefused(t *testing.T, source []byte) []byte {
	t.Helper()

	_, err := fromTalosJSON(source)

	if refused, ok := errors.AsType[*machineconfigv1alpha1.RefusedError](err); ok {
		return without(t, source, refused.Fields)
	}

	return source
}

// compareLeaves checks that machinery wrote every value that it was given.
func compareLeaves(t *testing.T, kind string, want, got []byte) {
	t.Helper()

	gave, wrote := leaves(t, want), leaves(t, got)

	for path, value := range gave {
		expected := value
		if text, ok := value.(string); ok {
			if other, ok := rewritten[kind+" "+path+" "+text]; ok {
				expected = other
			}
		}

		if diff := cmp.Diff(expected, wrote[path]); diff != "" {
			t.Errorf("%s: machinery changed the value (-typed +machinery):\n%s", path, diff)
		}
	}
}

// leaves maps the paths of all scalars, empty lists and empty objects to their values.
func leaves(t *testing.T, source []byte) map[string]any {
	t.Helper()

	var tree any

	if err := json.Unmarshal(source, &tree); err != nil {
		t.Fatalf("JSON: %v", err)
	}

	out := map[string]any{}

	var walk func(path string, v any)

	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, e := range v {
				walk(strings.TrimPrefix(path+"."+key, "."), e)
			}

			if len(v) == 0 {
				out[path] = v
			}
		case []any:
			for i, e := range v {
				walk(path+"["+strconv.Itoa(i)+"]", e)
			}

			if len(v) == 0 {
				out[path] = v
			}
		default:
			out[path] = v
		}
	}

	walk("", tree)

	return out
}
