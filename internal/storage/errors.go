// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"errors"
	"fmt"
	"strings"
)

// Error is a fault in a TalosStorage, which only a user can mend.
type Error struct {
	// Storage is the name of the TalosStorage.
	Storage string

	// Field is the path of the field at fault, for example "spec.volume.encryption.keys[0].slot".
	Field string

	// Err says what is wrong and what to do.
	Err error
}

// Error is "TalosStorage longhorn: spec.volume.minSize: 20GiB is more than maxSize 10GiB".
func (e *Error) Error() string {
	var parts []string

	if e.Storage != "" {
		parts = append(parts, "TalosStorage "+e.Storage)
	}

	if e.Field != "" {
		parts = append(parts, e.Field)
	}

	return strings.Join(append(parts, e.Err.Error()), ": ")
}

// Unwrap returns the error below.
func (e *Error) Unwrap() error { return e.Err }

// Errors returns the Errors in err, which may be joined, in order. Select and Prepare return no others.
func Errors(err error) []*Error {
	if err == nil {
		return nil
	}

	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*Error
		for _, each := range joined.Unwrap() {
			all = append(all, Errors(each)...)
		}

		return all
	}

	if fault, ok := errors.AsType[*Error](err); ok {
		return []*Error{fault}
	}

	return []*Error{{Err: err}}
}

// fault is an Error of a field. The name of the TalosStorage is put in where it is known.
func fault(field, format string, arguments ...any) error {
	return &Error{Field: field, Err: fmt.Errorf(format, arguments...)}
}

// named puts the name of the TalosStorage into the Errors of err.
func named(name string, err error) error {
	var all []error

	for _, each := range Errors(err) {
		all = append(all, &Error{Storage: name, Field: each.Field, Err: each.Err})
	}

	return errors.Join(all...)
}
