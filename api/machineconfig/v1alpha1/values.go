// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxCredential bounds a credential that comes out of a Secret, in bytes: some ten times what the longest key, token or chain of
// certificates has. Other content is bounded by the machine config, which a Secret of at most 1 MiB holds.
const MaxCredential = 64 << 10

// CheckValue tells what keeps the value of a Secret's or ConfigMap's key out of a machine config: it is no text in UTF-8, has a NUL, or
// has more than most bytes, where most is not 0. The error begins with a verb, goes behind the name of the key, and has nothing of the
// value.
func CheckValue(value string, most int) error {
	switch {
	case most != 0 && len(value) > most:
		return fmt.Errorf("has %d bytes, and at most %d are taken here", len(value), most)
	case !utf8.ValidString(value):
		return errors.New("is not text in UTF-8, and Talos takes nothing else here")
	case strings.Contains(value, "\x00"):
		return errors.New("has a NUL, which no text has")
	default:
		return nil
	}
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

	if err := json.Unmarshal(data, &one); err != nil {
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
