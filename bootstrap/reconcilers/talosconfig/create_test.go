// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// What the API server says is told in the words that it has for a Secret without values.
func TestNotCreated(t *testing.T) {
	const token = "abcdef.0123456789abcdef"

	config := []byte("version: v1alpha1\nmachine:\n    token: " + token + "\n    hostname: a-long-machine-name\n")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a-long-machine-name"}, Data: map[string][]byte{dataKey: config}}
	resource := schema.GroupResource{Resource: "secrets"}
	kind := schema.GroupKind{Kind: "Secret"}
	withheld := "; the words of the answer are left out, since they may quote the Secret"
	always := func(err error) func(string) error { return func(string) error { return err } }

	tests := map[string]struct {
		// answer is what the API server says to a Secret with the value.
		answer func(value string) error
		want   string
	}{
		"quota": {
			always(apierrors.NewForbidden(resource, secret.Name, errors.New("exceeded quota: few"))),
			`The API server refuses Secret a-long-machine-name: secrets "a-long-machine-name" is forbidden: exceeded quota: few`,
		},
		"invalid": {
			always(apierrors.NewInvalid(kind, secret.Name, field.ErrorList{field.Required(field.NewPath("metadata", "labels"), "team")})),
			`The API server refuses Secret a-long-machine-name: Secret "a-long-machine-name" is invalid: metadata.labels: Required value: team`,
		},
		"too large": {
			func(value string) error {
				if len(value) < len(token) {
					return nil
				}

				return apierrors.NewRequestEntityTooLargeError("limit is 3145728")
			},
			"The API server refuses Secret a-long-machine-name: RequestEntityTooLarge" + withheld,
		},
		"a policy that quotes the end of the value": {
			func(value string) error {
				return apierrors.NewForbidden(resource, secret.Name, errors.New("not this: "+value[max(0, len(value)-60):]))
			},
			`The API server refuses Secret a-long-machine-name: secrets "a-long-machine-name" is forbidden: not this: -`,
		},
		"a policy that quotes the middle of what is encoded, and minds the value": {
			func(value string) error {
				if len(value) < len(token) {
					return nil
				}

				return apierrors.NewInvalid(kind, secret.Name, field.ErrorList{
					field.Invalid(field.NewPath("data"), base64.StdEncoding.EncodeToString([]byte(value))[20:60], "no"),
				})
			},
			"The API server refuses Secret a-long-machine-name: Invalid" + withheld,
		},
		"no refusal":                  {always(apierrors.NewServiceUnavailable("later")), ""},
		"no refusal, quotes a value":  {func(value string) error { return apierrors.NewInternalError(errors.New("webhook: " + value)) }, ""},
		"no answer, quotes the value": {func(value string) error { return errors.New("dial: " + value) }, ""},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			// The API server that refuses is made up: each answer in turn cannot be had of a real one.
			api := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, object client.Object, options ...client.CreateOption) error {
					asked, _ := object.(*corev1.Secret)
					if (&client.CreateOptions{}).ApplyOptions(options).DryRun == nil || strings.Contains(string(asked.Data[dataKey]), token) {
						t.Error("the second question must be a dry run without the value")
					}

					return test.answer(string(asked.Data[dataKey]))
				},
			})

			got, err := (&Reconciler{Client: api}).notCreated(t.Context(), secret, test.answer(string(config)))
			if diff := cmp.Diff(test.want, got.dataSecret.message); diff != "" {
				t.Error(diff)
			}

			if refused := got != (outcome{}); refused != (test.want != "") {
				t.Errorf("got %+v, want one only for a refusal", got)
			}

			if err == nil || errors.Is(err, reconcile.TerminalError(nil)) {
				t.Errorf("got %v, want an error that is tried again", err)
			}

			for _, part := range []string{token[:10], token[12:], base64.StdEncoding.EncodeToString(config)[20:60]} {
				if strings.Contains(err.Error(), part) {
					t.Errorf("the error holds a part of the secret: %v", err)
				}
			}
		})
	}
}
