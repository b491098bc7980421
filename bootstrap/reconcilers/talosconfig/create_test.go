// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/reporting"
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
		"a webhook that says no, and nothing else": {
			always(&apierrors.StatusError{ErrStatus: metav1.Status{
				Status: metav1.StatusFailure, Code: 400, Message: `admission webhook "team.example.com" denied the request: no team`,
			}}),
			`The API server refuses Secret a-long-machine-name: admission webhook "team.example.com" denied the request: no team`,
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

			if got.bundle.status != metav1.ConditionTrue || got.rendered.status != metav1.ConditionTrue {
				t.Errorf("got %+v, want what has been rendered to be said", got)
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

// Once a config has been tried to be made, nothing is said to be waited for any more. What is known better stays.
func TestNotYet(t *testing.T) {
	config := &bootstrapv1.TalosConfig{ObjectMeta: metav1.ObjectMeta{Name: "w-1"}}
	down := fmt.Errorf("secret c-talos: create: %w", apierrors.NewInternalError(errors.New("failed calling webhook: hunter2")))
	refused := outcome{dataSecret: bad("NotAvailable", "The API server refuses Secret w-1: no team")}
	made := outcome{bundle: good("Available", ""), rendered: good("ConfigRendered", "")}
	yet := bad("NotAvailable", "Secret w-1 is not made yet: the last try failed, and the manager's log says of what; it is tried again")
	behind := apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "c-talos", errors.New("hunter2"))

	tests := map[string]struct {
		done outcome
		err  error
		want outcome
	}{
		"nothing was found out":           {outcome{}, down, outcome{dataSecret: yet}},
		"rendered, and cannot be written": {made, down, outcome{dataSecret: yet, bundle: made.bundle, rendered: made.rendered}},
		"no connection":                   {outcome{}, errors.New("dial: hunter2"), outcome{dataSecret: yet}},
		"another manager was faster":      {outcome{}, fmt.Errorf("own: %w", behind), outcome{}},
		"refused":                         {refused, down, refused},
		"paused in the meantime":          {outcome{}, nil, outcome{}},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{failing: reporting.NewFailing(clocktesting.NewFakePassiveClock(time.Now()))}
			if diff := cmp.Diff(test.want, r.explain(observation{config: config}, render{}, test.done, test.err), cmp.AllowUnexported(outcome{}, verdict{}, description{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The content of a pool's Secret that is not written is said to be behind, unless it is about to be looked at again anyway.
func TestNotUpdated(t *testing.T) {
	resource := schema.GroupResource{Resource: "secrets"}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "pool"}, Data: map[string][]byte{dataKey: []byte("x")}}
	denied := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 400, Message: "hunter2"}}

	tests := map[string]struct {
		answer error
		want   string
	}{
		"a webhook that says no": {denied, "The API server refuses the new content of Secret pool: code 400; the words of the answer are left out, since they may quote the Secret"},
		"a webhook that is down": {
			apierrors.NewInternalError(errors.New("hunter2")),
			"The new content of Secret pool cannot be written yet: the API server answers InternalError; it is tried again",
		},
		"changed": {apierrors.NewConflict(resource, "pool", errors.New("hunter2")), ""},
		"gone":    {apierrors.NewNotFound(resource, "pool"), ""},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := notUpdated(secret, test.answer)
			if diff := cmp.Diff(test.want, got.rendered.message); diff != "" {
				t.Error(diff)
			}

			if err == nil || strings.Contains(err.Error(), "hunter2") || errors.Is(err, reconcile.TerminalError(nil)) {
				t.Errorf("got %v, want an error without the answer's words that is tried again", err)
			}

			if test.want != "" && got.dataSecretName != "pool" {
				t.Errorf("got %+v, want the Secret that is there to be told", got)
			}
		})
	}
}

// A Secret that the TalosConfig is not let own is told of, unless the machine needs it no more.
func TestNotClaimed(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "w-1"}, Data: map[string][]byte{dataKey: []byte("x")}}
	denied := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 400, Message: "code 400"}}
	down := apierrors.NewInternalError(errors.New("down"))

	tests := map[string]struct {
		joined bool
		answer error
		want   verdict
	}{
		"refused": {
			false, denied,
			bad("NotAvailable", "The API server refuses that the TalosConfig owns Secret w-1, which would be deleted without it: code 400"),
		},
		"refused, and the machine runs": {true, denied, good("Available", "")},
		"down":                          {false, down, verdict{}},
		"down, and the machine runs":    {true, down, good("Available", "")},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			seen := observation{config: &bootstrapv1.TalosConfig{}, owner: &owner{joined: test.joined}}

			got, err := (&Reconciler{}).notClaimed(t.Context(), seen, secret, test.answer)
			if diff := cmp.Diff(test.want, got.dataSecret, cmp.AllowUnexported(verdict{})); diff != "" {
				t.Error(diff)
			}

			if err == nil || errors.Is(err, reconcile.TerminalError(nil)) {
				t.Errorf("got %v, want an error that is tried again", err)
			}
		})
	}
}
