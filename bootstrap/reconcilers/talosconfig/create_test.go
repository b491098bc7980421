// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
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
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestNotCreated(t *testing.T) {
	const token = "abcdef.0123456789abcdef"

	config := []byte("version: v1alpha1\nmachine:\n    token: " + token + "\n    hostname: a-long-machine-name\n")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a-long-machine-name"}, Data: map[string][]byte{dataKey: config}}
	resource := schema.GroupResource{Resource: "secrets"}
	kind := schema.GroupKind{Kind: "Secret"}

	tests := map[string]struct {
		err  error
		want string
	}{
		"quota": {
			apierrors.NewForbidden(resource, secret.Name, errors.New("exceeded quota: few")),
			`The API server refuses Secret a-long-machine-name: secrets "a-long-machine-name" is forbidden: exceeded quota: few`,
		},
		"invalid": {
			apierrors.NewInvalid(kind, secret.Name, field.ErrorList{field.Required(field.NewPath("metadata", "labels"), "team")}),
			`The API server refuses Secret a-long-machine-name: Secret "a-long-machine-name" is invalid: metadata.labels: Required value: team`,
		},
		"too large": {
			apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
			"The API server refuses Secret a-long-machine-name: Request entity too large: limit is 3145728",
		},
		"a policy that quotes a value": {
			apierrors.NewForbidden(resource, secret.Name, errors.New("token "+token+" is bad")),
			"The API server refuses Secret a-long-machine-name: Forbidden; the API server's words are left out, since they quote the Secret",
		},
		"a policy that quotes the Secret": {
			apierrors.NewInvalid(kind, secret.Name, field.ErrorList{
				field.Invalid(field.NewPath("data"), base64.StdEncoding.EncodeToString(config), "no"),
			}),
			"The API server refuses Secret a-long-machine-name: Invalid; the API server's words are left out, since they quote the Secret",
		},
		"no refusal":                  {apierrors.NewServiceUnavailable("later"), ""},
		"no refusal, quotes a value":  {apierrors.NewInternalError(errors.New("webhook: " + token)), ""},
		"no answer, quotes the value": {errors.New("dial: " + token), ""},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := notCreated(secret, test.err)
			if diff := cmp.Diff(test.want, got.dataSecret.message); diff != "" {
				t.Error(diff)
			}

			if refused := got != (outcome{}); refused != (test.want != "") {
				t.Errorf("got %+v, want one only for a refusal", got)
			}

			if err == nil || errors.Is(err, reconcile.TerminalError(nil)) {
				t.Errorf("got %v, want an error that is tried again", err)
			}

			if strings.Contains(err.Error(), token) {
				t.Error("the error holds a secret")
			}
		})
	}
}
