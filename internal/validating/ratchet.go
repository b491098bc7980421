// SPDX-License-Identifier: Apache-2.0

package validating

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/internal/validation"
)

// broughtBy leaves the faults that an update brings: those that the object did not have before, and those of a field that was changed.
// A fault of a document or of an entry of a list belongs to that entry as a whole, wherever it stands now.
func broughtBy(before, after client.Object, old, found []validation.Fault) ([]validation.Fault, error) {
	if len(old) == 0 {
		return found, nil
	}

	was, err := runtime.DefaultUnstructuredConverter.ToUnstructured(before)
	if err != nil {
		return nil, fmt.Errorf("compare with the stored object: %w", err)
	}

	is, err := runtime.DefaultUnstructuredConverter.ToUnstructured(after)
	if err != nil {
		return nil, fmt.Errorf("compare with the stored object: %w", err)
	}

	// What is told apart by more than its place.
	type identity struct{ list, kind, pointer, document, message string }

	identify := func(fault validation.Fault) identity {
		return identity{listOf(fault.Field), fault.Kind, fault.Pointer, fault.Document, fault.Message}
	}

	known := map[identity][]string{}
	for _, fault := range old {
		known[identify(fault)] = append(known[identify(fault)], fault.Field)
	}

	var brought []validation.Fault

	for _, fault := range found {
		tolerated := false
		value := at(is, fault.Field)

		for _, place := range known[identify(fault)] {
			if tolerated = equality.Semantic.DeepEqual(at(was, place), value); tolerated {
				break
			}
		}

		if !tolerated {
			brought = append(brought, fault)
		}
	}

	return brought, nil
}

// listOf is the field without the index at its end: "spec.documents" of "spec.documents[3]".
func listOf(path string) string {
	list, index, ok := strings.Cut(path, "[")
	if _, err := strconv.Atoi(strings.TrimSuffix(index, "]")); !ok || err != nil {
		return path
	}

	return list
}

// at is the value of a field such as "spec.registries[docker.io].host", or of the nearest one above it that can be told.
func at(object map[string]any, path string) any {
	var value any = object

	for _, token := range tokensOf(path) {
		switch typed := value.(type) {
		case map[string]any:
			next, ok := typed[token]
			if !ok {
				return value
			}

			value = next
		case []any:
			next, ok := item(typed, token)
			if !ok {
				return value
			}

			value = next
		default:
			return value
		}
	}

	return value
}

// listKeys are the fields by which the lists of our kinds find an item.
var listKeys = []string{"name", "host"}

// item is an item of a list by its index or by its key.
func item(list []any, token string) (any, bool) {
	if index, err := strconv.Atoi(token); err == nil && index >= 0 && index < len(list) {
		return list[index], true
	}

	for _, each := range list {
		for _, key := range listKeys {
			if object, ok := each.(map[string]any); ok && object[key] == token {
				return each, true
			}
		}
	}

	return nil, false
}

// tokensOf takes a path apart at its dots, and at the brackets around what may have dots of its own.
func tokensOf(path string) []string {
	var tokens []string

	for path != "" {
		if rest, ok := strings.CutPrefix(path, "["); ok {
			token, after, _ := strings.Cut(rest, "]")
			tokens, path = append(tokens, token), strings.TrimPrefix(after, ".")

			continue
		}

		end := strings.IndexAny(path, ".[")
		if end < 0 {
			return append(tokens, path)
		}

		tokens = append(tokens, path[:end])
		path = strings.TrimPrefix(path[end:], ".")
	}

	return tokens
}
