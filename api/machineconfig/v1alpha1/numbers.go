// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"errors"
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Numbers that a schema's integers cannot hold (fractions, and integers beyond 63 bits) are integers or strings in the API
// server and JSON numbers in Talos. Their text is never parsed to a float, so no digit is lost.

// unmarshalNumber reads a number, or a string. What the string holds is the schema's to check.
func unmarshalNumber(data []byte, out *intstr.IntOrString) error {
	if len(data) > 0 && data[0] == '"' {
		var text string

		if err := json.Unmarshal(data, &text); err != nil {
			return errors.New("want a number, or a number as a string")
		}

		*out = intstr.FromString(text)

		return nil
	}

	var number json.Number

	if err := json.Unmarshal(data, &number); err != nil || number == "" {
		return errors.New("want a number, or a number as a string")
	}

	if i, err := strconv.ParseInt(number.String(), 10, 32); err == nil && number.String() == strconv.FormatInt(i, 10) {
		*out = intstr.FromInt32(int32(i))
	} else {
		*out = intstr.FromString(number.String())
	}

	return nil
}

// marshalNumber writes what the API server takes: an integer that it can hold as a number, all else as a string.
func marshalNumber(v intstr.IntOrString) ([]byte, error) {
	if v.Type == intstr.String {
		if i, err := strconv.ParseInt(v.StrVal, 10, 64); err == nil && v.StrVal == strconv.FormatInt(i, 10) {
			return []byte(v.StrVal), nil
		}
	}

	return v.MarshalJSON()
}

// talosNumber is the number that Talos reads. Text that is no number, such as a duration, stays text.
func talosNumber(v intstr.IntOrString) any {
	text := v.String()
	if text == "" || text[0] != '-' && (text[0] < '0' || text[0] > '9') || !json.Valid([]byte(text)) {
		return text
	}

	return json.Number(text)
}
