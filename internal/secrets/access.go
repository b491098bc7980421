// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ReadError is a read of something that the API server has not answered with it. What it names was asked for, and is not from the answer.
type ReadError struct {
	// Object is what was to be read, as "Secret registry" or "Secrets".
	Object string

	Err error
}

func (e *ReadError) Error() string { return e.Object + ": read: " + e.Err.Error() }

func (e *ReadError) Unwrap() error { return e.Err }

// Denied says what the manager lacks a right for, and what mends that; it is empty for every error that is none of that. It has no word of the
// API server's, and is the same for as long as the same is denied.
func Denied(err error) string {
	if !apierrors.IsForbidden(err) {
		return ""
	}

	what := "make a request that this needs"
	if read, ok := errors.AsType[*ReadError](err); ok {
		what = "read " + read.Object
	}

	return fmt.Sprintf("the API server does not let the manager %s (Forbidden): give its ServiceAccount the rights back that it was installed with", what)
}
