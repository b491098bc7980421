// SPDX-License-Identifier: Apache-2.0

package clustersecrets

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// placeholder stands for each value of a Secret in a question that the answer may be shown to.
var placeholder = []byte("-")

// CreateFault is the error of a Secret's creation in a form that may be shown and logged. The words of a quota or a policy are what the user
// needs, and may quote the Secret; so the API server is asked once more, in a dry run, with a Secret that holds no values. What it says to
// that is told. If it takes that one, only what kind of answer it was.
func CreateFault(ctx context.Context, writer client.Writer, secret *corev1.Secret, err error) error {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return secrets.WithoutWords(err)
	}

	empty := secret.DeepCopy()
	empty.ResourceVersion, empty.UID, empty.StringData = "", "", nil

	for key := range empty.Data {
		empty.Data[key] = placeholder
	}

	said := writer.Create(ctx, empty, client.DryRunAll)
	if said == nil || secrets.AnswerOf(said) != secrets.AnswerOf(err) {
		return secrets.WithoutWords(err)
	}

	return said
}

// refusal tells what the API server said to a change of a Secret. Its words are left out: they may quote what the Secret holds.
func refusal(secret *corev1.Secret, verb string, err error) error {
	return told(secret, verb, secrets.WithoutWords(err))
}

// told makes a fault of an error that may be shown, if the user may be able to mend it.
func told(secret *corev1.Secret, verb string, err error) error {
	if err == nil {
		return nil
	}

	if secrets.IsRefusal(err) {
		return &FaultError{Reason: bootstrapv1.SecretsBundleNotAvailableReason, Again: true, Err: fmt.Errorf(
			"secret %s: %s: the API server refuses it: %w", secret.Name, verb, err)}
	}

	return fmt.Errorf("secret %s: %s: %w", secret.Name, verb, err)
}
