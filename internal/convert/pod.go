// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
	"github.com/maesh-dev/ichor/internal/suggest"
)

// unknownPodField is how the decoder of pods tells a field that there is not.
var unknownPodField = regexp.MustCompile(`unknown field "([^"]+)"`)

// aboutField says of the field that a user wrote what is said of the Secret's key that its content has gone to.
func aboutField(fault machineconfigv1alpha1.ReferenceFault) string {
	message, aboutValue := strings.CutPrefix(fault.Message, fault.Reference.Source.String()+" ")
	if !aboutValue {
		return "cannot come from a Secret: " + message
	}

	match := unknownPodField.FindStringSubmatch(message)
	if match == nil {
		return message
	}

	if near := podField(match[1]); near != "" {
		message += fmt.Sprintf("; did you mean %s?", near)
	}

	return message
}

// podField finds the field of a Pod that may have been meant by a path such as "spec.hostnetwork".
func podField(path string) string {
	t := reflect.TypeFor[corev1.Pod]()
	tokens := pathTokens(path)

	for i, token := range tokens {
		for t = target(t); t.Kind() == reflect.Slice || t.Kind() == reflect.Map; t = target(t) {
			t = t.Elem()
		}

		if t.Kind() != reflect.Struct {
			return ""
		}

		known := fieldsOf(t).byName
		if i == len(tokens)-1 {
			names := slices.Collect(maps.Keys(known))

			return cmp.Or(suggest.Nearest(token, names), suggest.Longer(token, names))
		}

		if field, ok := known[token]; ok {
			t = field.Type
		}
	}

	return ""
}
