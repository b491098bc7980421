// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	yamlreader "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// decodePod reads a Pod in YAML or JSON, strictly, and returns it as it was written, in JSON. Errors carry no value; what a
// secret text holds is shown by its fields' names at most, and only once it is plain that it is a Pod.
func decodePod(text string, secret bool) (json.RawMessage, error) {
	content, err := oneDocument(text)
	if err != nil {
		return nil, err
	}

	data, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		if secret {
			return nil, errors.New("is not valid YAML or JSON, or sets a field twice")
		}

		return nil, fmt.Errorf("is not valid: %w", err)
	}

	var identity struct {
		APIVersion any `json:"apiVersion"`
		Kind       any `json:"kind"`
	}

	if err := json.Unmarshal(data, &identity); err != nil || identity.APIVersion != "v1" || identity.Kind != "Pod" {
		return nil, errors.New("is not a Pod: want apiVersion v1 and kind Pod")
	}

	pod := &corev1.Pod{}

	strict, err := kjson.UnmarshalStrict(data, pod)
	if err != nil {
		// The decoder's own words may hold the value.
		return nil, fmt.Errorf("is not a Pod: %w", misshapen(data, reflect.TypeFor[corev1.Pod](), ""))
	}

	if len(strict) > 0 {
		return nil, fmt.Errorf("is not a Pod: %w", errors.Join(strict...))
	}

	if err := incompletePod(pod); err != nil {
		return nil, fmt.Errorf("is not a whole Pod: %w", err)
	}

	return data, nil
}

// oneDocument returns the one YAML document of a text.
func oneDocument(text string) ([]byte, error) {
	reader := yamlreader.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))

	var content []byte

	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			return nil, errors.New("is not valid YAML or JSON")
		}

		if empty(document) {
			continue
		}

		if content != nil {
			return nil, errors.New("holds several documents; want one Pod")
		}

		content = document
	}

	if content == nil {
		return nil, errors.New("is empty; want a Pod")
	}

	return content, nil
}

// empty reports whether a YAML document has nothing but comments.
func empty(document []byte) bool {
	for line := range bytes.Lines(document) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("---")) {
			return false
		}
	}

	return true
}
