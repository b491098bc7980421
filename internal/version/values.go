// SPDX-License-Identifier: Apache-2.0

package version

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// valueRule says since when Talos takes certain values of a field that it knew before.
type valueRule struct {
	// field is a JSON Pointer.
	field string

	// since is the minor of the first Talos that takes the values.
	since int

	// value says which values are meant, in words.
	value string

	// meant tells one of them.
	meant func(value string) bool
}

// valueRules are the values that came after the field that they are in, as far as they are no constants of the field's type, which
// firstMinorOfValue has. A node refuses the whole config for one.
//
// Source: the decoders and validation of machinery 1.12.0, 1.13.0 and 1.14.1, compared.
var valueRules = map[string][]valueRule{
	"BondConfig": {
		// Talos 1.12 reads a number here and no name, and the name is what machinery writes since.
		{field: "/failOverMac", since: 13, value: "a mode by its name", meant: func(string) bool { return true }},
	},
	"RawVolumeConfig":  {negativeSize},
	"SwapVolumeConfig": {negativeSize},
	"UserVolumeConfig": {negativeSize},
	"VolumeConfig": {
		negativeSize,
		{field: "/name", since: 14, value: "a volume other than STATE, EPHEMERAL and IMAGECACHE", meant: oneOf("ETCD", "CRI", "KUBELET", "LOG")},
	},
}

var negativeSize = valueRule{
	field: "/provisioning/maxSize", since: 13, value: "a negative size",
	meant: func(value string) bool { return strings.HasPrefix(value, "-") },
}

func oneOf(values ...string) func(string) bool {
	return func(value string) bool { return slices.Contains(values, value) }
}

// rulesOfConstants are the rules that follow from firstMinorOfValue, sorted. Talos reads a constant's text in any case.
func rulesOfConstants(kind string) []valueRule {
	fields := firstMinorOfValue[kind]

	var rules []valueRule

	for _, field := range slices.Sorted(maps.Keys(fields)) {
		for _, value := range slices.Sorted(maps.Keys(fields[field])) {
			rules = append(rules, valueRule{
				field: field, since: fields[field][value], value: value,
				meant: func(have string) bool { return strings.EqualFold(have, value) },
			})
		}
	}

	return rules
}

// CheckValues checks that a node takes the values of a document, of which it knows kind and fields; see CheckDocument. The function
// gives the value at a JSON Pointer as Talos writes it, and false for a field that is not set.
//
// The error holds a *TooNewError for each field with a value that is too new, in order.
func CheckValues(talos Talos, kind string, valueOf func(pointer string) (string, bool)) error {
	if talos.IsZero() {
		return errors.New("the Talos of the machine must be known to check values against it")
	}

	if _, known := firstMinorOfKind[kind]; !known {
		return fmt.Errorf("talos has no document kind %q", kind)
	}

	var errs []error

	for _, rule := range slices.Concat(rulesOfConstants(kind), valueRules[kind]) {
		if talos.Contract().AtLeast(rule.since) {
			continue
		}

		if value, set := valueOf(rule.field); set && rule.meant(value) {
			since := Contract{major: talosMajor, minor: rule.since}
			errs = append(errs, &TooNewError{Kind: kind, Field: rule.field, Value: rule.value, Since: since, Talos: talos})
		}
	}

	return errors.Join(errs...)
}
