// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// IsRefusal says whether the API server has refused a write for good, by a quota, an admission policy or a rule: the same again is refused
// again until somebody changes something.
func IsRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsRequestEntityTooLargeError(err)
}

const withheld = "the API server's words are left out, since they quote the Secret"

// WithoutValues replaces the words of an error that quotes what the Secret holds, as an admission policy may do.
func WithoutValues(object *corev1.Secret, err error) error {
	text := strings.ReplaceAll(err.Error(), object.Name, "")
	quoted := false

	for _, value := range object.Data {
		quoted = quoted || quotes(text, value)
	}

	if !quoted {
		return err
	}

	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return errors.New(withheld)
	}

	hidden := status.Status()
	hidden.Message = fmt.Sprintf("%s; %s", hidden.Reason, withheld)
	hidden.Details = nil

	return &apierrors.StatusError{ErrStatus: hidden}
}

// quotable is how long a value must be to be looked for: a shorter one is in any text by chance.
const quotable = 12

// quotes says whether the text has a line or a YAML value of the data in it, or the beginning of the encoded data.
func quotes(text string, data []byte) bool {
	encoded := base64.StdEncoding.EncodeToString(data[:min(len(data), 3*quotable)])
	if len(encoded) >= quotable && strings.Contains(text, encoded) {
		return true
	}

	for line := range bytes.Lines(data) {
		value := string(bytes.TrimSpace(line))
		if _, after, ok := strings.Cut(value, ": "); ok {
			value = after
		}

		if value = strings.Trim(value, `"'- `); len(value) >= quotable && strings.Contains(text, value) {
			return true
		}
	}

	return false
}
