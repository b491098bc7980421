// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"math"
	"strings"

	"github.com/maesh-dev/ichor/internal/codegen/history"
	"github.com/maesh-dev/ichor/internal/codegen/model"
)

// formsPage describes the scalars that have a form of their own.
const formsPage = "forms.md"

// form says in words what a field takes.
func form(f *model.Field) string {
	switch f.Type.Shape {
	case model.List:
		return "list of " + plural(f, *f.Type.Elem) + atMost(f.MaxItems, "items")
	case model.Map:
		return "map of " + plural(f, *f.Type.Elem) + atMost(f.MaxItems, "keys")
	default:
		return one(f, f.Type)
	}
}

// plural names the items of a list or map.
func plural(f *model.Field, t model.Type) string {
	switch t.Shape {
	case model.Bool:
		return "booleans"
	case model.Text:
		if len(f.Enum) > 0 {
			return oneOf(f.Enum)
		}

		return "strings"
	case model.Int32, model.Int64:
		return "integers" + between(f)
	case model.StructRef:
		return "objects"
	case model.List:
		return "lists of " + plural(f, *t.Elem)
	case model.Map:
		return "maps of " + plural(f, *t.Elem)
	case model.ScalarRef:
		if len(t.Scalar.Enum) == 0 {
			return "values: " + scalar(t.Scalar)
		}

		return scalar(t.Scalar)
	case model.ValueSource:
		return "references to keys of Secrets or ConfigMaps"
	default:
		return one(f, t)
	}
}

func one(f *model.Field, t model.Type) string {
	switch t.Shape {
	case model.Bool:
		return "boolean"
	case model.Int32, model.Int64:
		return "integer" + between(f)
	case model.Text:
		if len(f.Enum) > 0 {
			return oneOf(f.Enum)
		}

		return "string" + atMost(f.MaxLength, "characters")
	case model.Base64:
		return "bytes in base64" + atMost(f.MaxLength, "bytes")
	case model.ScalarRef:
		return scalar(t.Scalar)
	case model.StructRef:
		return "object"
	case model.SecretKey:
		return "reference to a key of a Secret: `name`, `key`"
	case model.ValueSource:
		return "reference to a key: `secretKeyRef` or `configMapKeyRef`, with `name` and `key`"
	default:
		return "refused"
	}
}

// scalar is a form of its own: the values of an enum, or a few words that link to the whole description.
func scalar(s *model.Scalar) string {
	if len(s.Enum) > 0 {
		return oneOf(s.Enum)
	}

	return fmt.Sprintf("[%s](%s#%s)", shortDoc(s), formsPage, strings.ToLower(s.Name))
}

// shortDoc is a scalar's text as a phrase within a sentence: the first sentence, without article and full stop.
func shortDoc(s *model.Scalar) string {
	text, _, _ := strings.Cut(s.Doc, ". ")
	text = strings.TrimSuffix(text, ".")

	for _, article := range []string{"A ", "An ", "The "} {
		if rest, ok := strings.CutPrefix(text, article); ok {
			return rest
		}
	}

	if text == "" {
		return s.Name
	}

	return text
}

func oneOf(values []string) string {
	quoted := make([]string, 0, len(values))
	for _, v := range values {
		if v == "" {
			v = `""`
		}

		quoted = append(quoted, "`"+v+"`")
	}

	if len(quoted) == 1 {
		return "only " + quoted[0]
	}

	return "one of " + strings.Join(quoted, ", ")
}

func atMost(bound int, what string) string {
	if bound == 0 {
		return ""
	}

	return fmt.Sprintf(", at most %d %s", bound, what)
}

func between(f *model.Field) string {
	switch {
	case f.Minimum != nil && f.Maximum != nil && *f.Maximum != math.MaxInt64:
		return fmt.Sprintf(", %d to %d", *f.Minimum, *f.Maximum)
	case f.Minimum != nil:
		return fmt.Sprintf(", at least %d", *f.Minimum)
	default:
		return ""
	}
}

// listRule is how a list with a rule of its own merges.
type listRule struct {
	words string
	// items says that fields of an item merge one by one. Otherwise an item comes as a whole.
	items bool
}

// listRules are the lists that neither append nor, by a tag of machinery's, replace. They are those of the merge, by the Go type.
var listRules = map[string]listRule{
	"config/types/v1alpha1.NetworkDeviceList":         {words: "items merge by `interface`, else `deviceSelector`", items: true},
	"config/types/v1alpha1.VlanList":                  {words: "items merge by `vlanId`", items: true},
	"config/types/v1alpha1.AdmissionPluginConfigList": {words: "items merge by `name`", items: true},
	"config/types/runtime/extensions.ConfigFileList":  {words: "items merge by `mountPath`", items: true},
	"config/types/security.ImageVerificationRules":    {words: "an item replaces the one of the same `image`"},
	"config/types/v1alpha1.ClusterInlineManifests":    {words: "an item replaces the one of the same `name`"},
}

// The words for how other fields merge.
const (
	mergeKey       = "names the document"
	mergeOverwrite = "overwrites"
	mergeAppend    = "appends"
	mergeReplace   = "replaces"
	mergeByKey     = "merges by key"
	mergeByField   = "merges by field"
	mergeWithItem  = "with its item"
	mergeNever     = ""
)

// merges says how a field merges, and whether what is below it merges by itself.
func merges(f *model.Field, known history.Field, withItem bool) (words string, below bool) {
	switch {
	case f.Refusal != "":
		return mergeNever, false
	case withItem:
		return mergeWithItem, false
	case known.Merge == "replace":
		return mergeReplace, false
	case f.Required:
		return mergeKey, true
	}

	if rule, special := listRules[known.Type]; special {
		return rule.words, rule.items
	}

	switch f.Type.Shape {
	case model.List:
		return mergeAppend, false
	case model.Map:
		return mergeByKey, true
	case model.StructRef:
		return mergeByField, true
	case model.ValueSource, model.SecretKey:
		return "as the field that it stands for", true
	default:
		return mergeOverwrite, true
	}
}
