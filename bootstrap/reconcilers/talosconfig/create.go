// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// checkSize says so when no Secret can hold the config. Only smaller inputs help.
func checkSize(config machineconfig.Config) error {
	size := len(config.Bytes)
	if size <= corev1.MaxSecretSize {
		return nil
	}

	return &machineconfig.Error{
		Reason: machineconfig.ReasonValidationFailed,
		Err: fmt.Errorf("the machine config has %d bytes, and a Secret holds %d at most: make the patches of the machine smaller, "+
			"for example the contents of files", size, corev1.MaxSecretSize),
	}
}

// notCreated reports that the API server has not taken the data Secret. A refusal, such as that of a quota or an admission
// policy, is shown to the user, who may be able to lift it; nothing that is watched tells of that, so it is tried again.
// Everything else goes away by itself, and changes no condition.
func notCreated(secret *corev1.Secret, err error) (outcome, error) {
	err = withoutConfig(secret, err)
	fault := fmt.Errorf("secret %s: create: %w", secret.Name, err)

	if !isRefusal(err) {
		return outcome{}, fault
	}

	return outcome{
		dataSecret: bad(bootstrapv1.TalosConfigDataSecretNotAvailableReason,
			shorten(fmt.Sprintf("The API server refuses Secret %s: %s", secret.Name, err))),
		bundle:   good(bootstrapv1.SecretsBundleAvailableReason, ""),
		rendered: good(bootstrapv1.TalosConfigConfigRenderedReason, ""),
	}, fault
}

// isRefusal tells an answer of the API server that stays the same until somebody changes something.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// withoutConfig replaces the words of an error that quotes the Secret's config, as an admission policy may do.
func withoutConfig(secret *corev1.Secret, err error) error {
	if !quotes(strings.ReplaceAll(err.Error(), secret.Name, ""), secret.Data[dataKey]) {
		return err
	}

	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return errors.New("the API server's words are left out, since they quote the machine config")
	}

	hidden := status.Status()
	hidden.Message = fmt.Sprintf("%s; the API server's words are left out, since they quote the machine config", hidden.Reason)
	hidden.Details = nil

	return &apierrors.StatusError{ErrStatus: hidden}
}

// quotable is how long a value of a config must be to be looked for: a shorter one is in any text by chance.
const quotable = 12

// quotes says whether the text has a value of the config in it, or the beginning of the encoded config.
func quotes(text string, config []byte) bool {
	encoded := base64.StdEncoding.EncodeToString(config[:min(len(config), 3*quotable)])
	if len(encoded) >= quotable && strings.Contains(text, encoded) {
		return true
	}

	for line := range bytes.Lines(config) {
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
