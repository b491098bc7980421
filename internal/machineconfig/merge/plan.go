// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/cel"
	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime/extensions"
	"github.com/siderolabs/talos/pkg/machinery/config/types/security"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"go.yaml.in/yaml/v4"
)

// shape says how values of a type merge.
type shape uint8

const (
	shapeScalar   shape = iota // replaced as a whole
	shapePointer               // merges what it points to
	shapeList                  // appends, or merges by listRule
	shapeMap                   // merges by key
	shapeStruct                // merges by field
	shapeFreeForm              // meta.Unstructured
)

// plan is what there is to know of a Go type, worked out once per type.
type plan struct {
	typ    reflect.Type
	shape  shape
	elem   *plan
	fields []field
	byName map[string]int
	list   *listRule
	print  func(reflect.Value) string
	// custom says that the type reads YAML by its own method, so that a node of
	// any shape may be right for it.
	custom bool
}

// field is one YAML field of a struct, those of inlined structs included.
type field struct {
	name      string
	index     []int
	plan      *plan
	replace   bool
	omitEmpty bool
}

func (p *plan) field(name string) *field {
	if i, ok := p.byName[name]; ok {
		return &p.fields[i]
	}

	return nil
}

// at gives the field's value in a struct.
func (f *field) at(v reflect.Value) reflect.Value {
	if len(f.index) == 1 {
		return v.Field(f.index[0])
	}

	return v.FieldByIndex(f.index)
}

type (
	merger   interface{ Merge(other any) error }
	yamlIn   interface{ UnmarshalYAML(func(any) error) error }
	yamlNode interface{ UnmarshalYAML(*yaml.Node) error }
)

var (
	mergerType          = reflect.TypeFor[merger]()
	yamlInType          = reflect.TypeFor[yamlIn]()
	yamlNodeType        = reflect.TypeFor[yamlNode]()
	yamlOutType         = reflect.TypeFor[yaml.Marshaler]()
	textMarshalerType   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	freeFormType        = reflect.TypeFor[meta.Unstructured]()
	durationType        = reflect.TypeFor[time.Duration]()
)

// wholeMergers are the types that have a merge rule of their own in machinery
// which comes down to (or, for the lossy ones, was meant to be) a replacement.
var wholeMergers = map[reflect.Type]bool{
	reflect.TypeFor[cel.Expression]():       true,
	reflect.TypeFor[block.ByteSize]():       true,
	reflect.TypeFor[block.PercentageSize](): true,
	reflect.TypeFor[meta.Prefix]():          true,
	reflect.TypeFor[meta.Addr]():            true,
	reflect.TypeFor[meta.AddrPort]():        true,
}

// keyMergers are maps whose rule in machinery is that of every map here: a key
// that the patch has is replaced.
var keyMergers = map[reflect.Type]bool{
	reflect.TypeFor[meta.Args](): true,
}

// byteFields are the structs that write byte fields as base64 through a method,
// without YAML tags; their fields merge one by one all the same.
var byteFields = map[reflect.Type][][2]string{
	reflect.TypeFor[x509.PEMEncodedCertificate]():       {{"Crt", "crt"}},
	reflect.TypeFor[x509.PEMEncodedCertificateAndKey](): {{"Crt", "crt"}, {"Key", "key"}},
	reflect.TypeFor[x509.PEMEncodedKey]():               {{"Key", "key"}},
}

// listRules are the lists that do not simply append.
var listRules = map[reflect.Type]*listRule{
	reflect.TypeFor[v1alpha1.NetworkDeviceList]():         {keys: []string{"interface", "deviceSelector"}},
	reflect.TypeFor[v1alpha1.VlanList]():                  {keys: []string{"vlanId"}, zeroKey: true},
	reflect.TypeFor[v1alpha1.AdmissionPluginConfigList](): {keys: []string{"name"}, zeroKey: true},
	reflect.TypeFor[extensions.ConfigFileList]():          {keys: []string{"mountPath"}, zeroKey: true},
	reflect.TypeFor[security.ImageVerificationRules]():    {keys: []string{"image"}, zeroKey: true, replace: true},
	// Talos appends, and then refuses the duplicate name.
	reflect.TypeFor[v1alpha1.ClusterInlineManifests](): {keys: []string{"name"}, replace: true},
}

var (
	plansMu sync.RWMutex
	plans   = map[reflect.Type]*plan{}
)

// planFor gives the plan of a type. A type with a merge rule that this package
// does not know is an error: a newer machinery must not be merged by guess.
func planFor(t reflect.Type) (*plan, error) {
	plansMu.RLock()
	p := plans[t]
	plansMu.RUnlock()

	if p != nil {
		return p, nil
	}

	p, err := buildPlan(t, nil)
	if err != nil {
		return nil, err
	}

	plansMu.Lock()
	defer plansMu.Unlock()

	if known := plans[t]; known != nil {
		return known, nil
	}

	plans[t] = p

	return p, nil
}

func implements(t, iface reflect.Type) bool {
	return t.Implements(iface) || reflect.PointerTo(t).Implements(iface)
}

func buildPlan(t reflect.Type, outer []reflect.Type) (*plan, error) {
	if slices.Contains(outer, t) {
		return nil, fmt.Errorf("type %v contains itself, which merging does not support", t)
	}

	outer = append(outer, t)
	p := &plan{typ: t}

	// Before the questions about methods: a pointer has those of its target.
	if t.Kind() == reflect.Pointer {
		p.shape = shapePointer

		var err error

		p.elem, err = buildPlan(t.Elem(), outer)

		return p, err
	}

	if t == freeFormType {
		p.shape = shapeFreeForm

		return p, nil
	}

	if names, ok := byteFields[t]; ok {
		return p, p.addByteFields(names)
	}

	p.list = listRules[t]
	p.custom = implements(t, yamlInType) || implements(t, yamlNodeType) || implements(t, textUnmarshalerType)

	if err := p.checkKnown(); err != nil {
		return nil, err
	}

	if p.list == nil && (p.custom || implements(t, yamlOutType) || implements(t, textMarshalerType)) {
		p.print = printer(t)

		return p, nil
	}

	return p, p.addParts(outer)
}

// checkKnown refuses types whose merge rule in machinery is not known here.
func (p *plan) checkKnown() error {
	t := p.typ

	if implements(t, mergerType) && p.list == nil && !wholeMergers[t] && !keyMergers[t] {
		return fmt.Errorf("type %v has a merge rule of its own that is not known here", t)
	}

	composite := t.Kind() == reflect.Map || (t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8)
	if composite && p.custom && p.list == nil && !keyMergers[t] {
		return fmt.Errorf("type %v reads YAML by its own rule, so that how to merge it is not known here", t)
	}

	return nil
}

func (p *plan) addByteFields(names [][2]string) error {
	p.shape = shapeStruct
	p.byName = make(map[string]int, len(names))

	for i, name := range names {
		sf, ok := p.typ.FieldByName(name[0])
		if !ok || sf.Type.Kind() != reflect.Slice || sf.Type.Elem().Kind() != reflect.Uint8 {
			return fmt.Errorf("type %v has no byte field %s", p.typ, name[0])
		}

		p.byName[name[1]] = i
		p.fields = append(p.fields, field{
			name:  name[1],
			index: sf.Index,
			plan:  &plan{typ: sf.Type, custom: true, print: printer(sf.Type)},
		})
	}

	return nil
}

func (p *plan) addParts(outer []reflect.Type) (err error) {
	t := p.typ

	switch t.Kind() {
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			p.print = printer(t)

			return nil
		}

		p.shape = shapeList
		p.elem, err = buildPlan(t.Elem(), outer)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return fmt.Errorf("type %v has keys that are not strings, which merging does not support", t)
		}

		p.shape = shapeMap
		p.elem, err = buildPlan(t.Elem(), outer)
	case reflect.Struct:
		p.shape = shapeStruct
		p.byName = map[string]int{}
		err = p.addFields(t, nil, outer)
	case reflect.Pointer, reflect.Array, reflect.Chan, reflect.Func, reflect.Interface, reflect.UnsafePointer,
		reflect.Complex64, reflect.Complex128, reflect.Uintptr, reflect.Invalid:
		return fmt.Errorf("merging does not support the type %v", t)
	default:
		p.print = printer(t)
	}

	return err
}

func (p *plan) addFields(t reflect.Type, index []int, outer []reflect.Type) error {
	for i := range t.NumField() {
		sf := t.Field(i)
		if !sf.IsExported() {
			continue
		}

		at := append(append([]int(nil), index...), i)
		name, options, _ := strings.Cut(sf.Tag.Get("yaml"), ",")

		if name == "-" {
			continue
		}

		if strings.Contains(options, "inline") {
			if sf.Type.Kind() != reflect.Struct {
				return fmt.Errorf("type %v: field %s: only structs can be inlined", t, sf.Name)
			}

			if err := p.addFields(sf.Type, at, outer); err != nil {
				return err
			}

			continue
		}

		if name == "" {
			name = strings.ToLower(sf.Name)
		}

		fp, err := buildPlan(sf.Type, outer)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}

		p.byName[name] = len(p.fields)
		p.fields = append(p.fields, field{
			name:      name,
			index:     at,
			plan:      fp,
			replace:   strings.Contains(sf.Tag.Get("merge"), "replace"),
			omitEmpty: strings.Contains(options, "omitempty"),
		})
	}

	return nil
}
