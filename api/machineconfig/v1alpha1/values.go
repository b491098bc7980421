// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"errors"
	"fmt"
)

// unmarshalNumberText reads a string, or a number as its text.
func unmarshalNumberText(data []byte, out *string) error {
	var number json.Number

	if len(data) > 0 && data[0] != '"' {
		if err := json.Unmarshal(data, &number); err != nil {
			return errors.New("want a string or a number")
		}

		*out = number.String()

		return nil
	}

	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("want a string or a number: %w", err)
	}

	return nil
}

// unmarshalArguments reads a list of strings, or one string as a list of one.
func unmarshalArguments(data []byte, out *[]string) error {
	if len(data) > 0 && data[0] == '[' {
		var list []string

		if err := json.Unmarshal(data, &list); err != nil {
			return errors.New("want a string or a list of strings")
		}

		*out = list

		return nil
	}

	var one string

	// Talos takes a number for its text as well.
	if err := unmarshalNumberText(data, &one); err != nil {
		return errors.New("want a string or a list of strings")
	}

	*out = []string{one}

	return nil
}

// talosArguments is a scalar for a list of one: Talos 1.12 knows no lists here.
func talosArguments(values []string) any {
	if len(values) == 1 {
		return values[0]
	}

	return append([]string{}, values...)
}
