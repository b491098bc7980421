// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// Finding is one thing for which the API server would refuse an object.
type Finding struct {
	// Field is where, for example "spec.documents[0].hostnameConfig.auto". Empty when the object as a whole is meant.
	Field string

	// Message says what is wrong and what is allowed.
	Message string
}

// Rules are those of a set of CustomResourceDefinitions. Any number of goroutines may use them at once.
type Rules struct {
	kinds map[schema.GroupVersionKind]*kind
}

// kind is the rules of one kind. What is costly to make is made at first use.
type kind struct {
	namespaced bool
	props      *apiextensions.JSONSchemaProps

	once       sync.Once
	err        error
	structural *structuralschema.Structural
	schema     schemavalidation.SchemaValidator
	rules      *cel.Validator
}

// Load reads the definitions in every file below the roots.
func Load(roots ...fs.FS) (*Rules, error) {
	rules := &Rules{kinds: map[schema.GroupVersionKind]*kind{}}

	for _, root := range roots {
		if err := rules.load(root); err != nil {
			return nil, err
		}
	}

	return rules, nil
}

func (r *Rules) load(root fs.FS) error {
	return fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}

		data, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}

		if err = r.add(data); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}

		return nil
	})
}

func (r *Rules) add(data []byte) error {
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(data, &definition); err != nil {
		return err
	}

	for i := range definition.Spec.Versions {
		version := &definition.Spec.Versions[i]
		if !version.Served || version.Schema == nil {
			continue
		}

		props := &apiextensions.JSONSchemaProps{}
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, props, nil); err != nil {
			return err
		}

		gvk := schema.GroupVersionKind{Group: definition.Spec.Group, Version: version.Name, Kind: definition.Spec.Names.Kind}
		r.kinds[gvk] = &kind{namespaced: definition.Spec.Scope == apiextensionsv1.NamespaceScoped, props: props}
	}

	return nil
}

// Kinds are the kinds that the rules are for, sorted by name.
func (r *Rules) Kinds() []schema.GroupVersionKind {
	return slices.SortedFunc(maps.Keys(r.kinds), func(a, b schema.GroupVersionKind) int {
		return strings.Compare(a.String(), b.String())
	})
}

// Has tells whether there are rules for the kind.
func (r *Rules) Has(gvk schema.GroupVersionKind) bool { return r.kinds[gvk] != nil }

func (k *kind) prepare() error {
	k.once.Do(func() {
		if k.structural, k.err = structuralschema.NewStructural(k.props); k.err != nil {
			return
		}

		if k.schema, _, k.err = schemavalidation.NewSchemaValidator(k.props); k.err != nil {
			return
		}

		k.rules = cel.NewValidator(k.structural, true, celconfig.PerCallLimit)
	})

	return k.err
}

// Check finds everything for which the API server would refuse to create the object, with unknown fields as errors, as
// kubectl asks for. The object is not changed, and its status is not looked at, since a creation drops it. An error means that
// the rules themselves are broken.
func (r *Rules) Check(object map[string]any) ([]Finding, error) {
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(object)}
	delete(u.Object, "status")

	k := r.kinds[u.GroupVersionKind()]
	if k == nil {
		return nil, fmt.Errorf("%s: no rules for this kind", u.GroupVersionKind())
	}

	if err := k.prepare(); err != nil {
		return nil, fmt.Errorf("%s: the definition is broken: %w", u.GroupVersionKind(), err)
	}

	var findings []Finding

	for _, path := range pruning.PruneWithOptions(u.Object, k.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		findings = append(findings, Finding{path, unknownField(k.structural, path)})
	}

	errs := validation.ValidateObjectMetaAccessor(u, k.namespaced, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, schemavalidation.ValidateCustomResource(nil, u.Object, k.schema)...)
	errs = append(errs, objectmeta.Validate(nil, u.Object, k.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.structural, u.Object)...)

	// As in the API server, rules are tried only on what has the right types, since they would fail on the rest.
	if !blocksRules(errs) {
		broken, _ := k.rules.Validate(context.Background(), nil, k.structural, u.Object, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, broken...)
	}

	for _, err := range errs {
		if !followsFromType(err, errs) {
			findings = append(findings, Finding{fieldOf(err), inContext(k.structural, err, describe(err))})
		}
	}

	return inOrder(findings), nil
}

func blocksRules(errs field.ErrorList) bool {
	return slices.ContainsFunc(errs, func(err *field.Error) bool {
		return slices.Contains([]field.ErrorType{
			field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid,
		}, err.Type)
	})
}

// followsFromType tells an error that is one only because the value has the wrong type, which is told already.
func followsFromType(err *field.Error, errs field.ErrorList) bool {
	return err.Type == field.ErrorTypeNotSupported && slices.ContainsFunc(errs, func(other *field.Error) bool {
		return other.Type == field.ErrorTypeTypeInvalid && other.Field == err.Field
	})
}

// inOrder sorts by field and drops what was said twice.
func inOrder(findings []Finding) []Finding {
	slices.SortStableFunc(findings, func(a, b Finding) int { return strings.Compare(a.Field, b.Field) })

	return slices.Compact(findings)
}
