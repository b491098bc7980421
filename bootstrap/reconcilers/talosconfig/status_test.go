// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/clustersecrets"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

func TestFaultMessage(t *testing.T) {
	faults := func(texts ...string) []*machineconfig.Error {
		all := make([]*machineconfig.Error, len(texts))
		for i, text := range texts {
			all[i] = &machineconfig.Error{Err: errors.New(text)}
		}

		return all
	}

	tests := map[string]struct {
		faults []*machineconfig.Error
		want   string
	}{
		"one":            {faults("b"), "b"},
		"sorted":         {faults("b", "a"), "a; b"},
		"said once":      {faults("b", "a", "b"), "a; b"},
		"as many as fit": {faults("e", "d", "c", "b", "a"), "a; b; c; d; e"},
		"capped":         {faults("g", "f", "e", "d", "c", "b", "a"), "a; b; c; d; e; and 2 more"},
		"the longest":    {faults(strings.Repeat("x", 1024)), strings.Repeat("x", 1024)},
		"shortened":      {faults(strings.Repeat("x", 1025)), strings.Repeat("x", 1021) + "..."},
		"not in a rune":  {faults(strings.Repeat("x", 1020) + "äöü"), strings.Repeat("x", 1020) + "..."},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, faultMessage(test.faults)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A fault that only a user can mend is told apart from one that goes away by itself.
func TestFailed(t *testing.T) {
	tests := map[string]struct {
		err          error
		want         outcome
		wantTerminal bool
	}{
		"bundle": {
			err: fmt.Errorf("render: %w", &clustersecrets.FaultError{Reason: "Missing", Err: errors.New("secret c-talos does not exist")}),
			want: outcome{
				dataSecret: bad("NotAvailable", "See the condition SecretsBundleAvailable"),
				bundle:     bad("Missing", "secret c-talos does not exist"),
				rendered:   bad("WaitingForInputs", "See the condition SecretsBundleAvailable"),
			},
			wantTerminal: true,
		},
		"bundle that the API server refuses": {
			err: &clustersecrets.FaultError{Reason: "NotAvailable", Again: true, Err: errors.New("exceeded quota")},
			want: outcome{
				dataSecret: bad("NotAvailable", "See the condition SecretsBundleAvailable"),
				bundle:     bad("NotAvailable", "exceeded quota"),
				rendered:   bad("WaitingForInputs", "See the condition SecretsBundleAvailable"),
			},
		},
		"inputs": {
			err: errors.Join(
				&machineconfig.Error{Reason: machineconfig.ReasonInvalidReference, Err: errors.New("b")},
				&machineconfig.Error{Reason: machineconfig.ReasonRenderFailed, Err: errors.New("a")},
			),
			want:         outcome{dataSecret: bad("NotAvailable", "See the condition ConfigRendered"), rendered: bad("InvalidReference", "a; b")},
			wantTerminal: true,
		},
		"the API server": {err: errors.New("connection refused")},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := failed(renderInputs{}, test.err)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(outcome{}, verdict{}, description{})); diff != "" {
				t.Error(diff)
			}

			if !errors.Is(err, test.err) {
				t.Errorf("got %v, want it to wrap %v", err, test.err)
			}

			if terminal := err != test.err; terminal != test.wantTerminal { //nolint:errorlint // whether it is wrapped is the question
				t.Errorf("terminal: got %t, want %t", terminal, test.wantTerminal)
			}
		})
	}
}

// A condition that is false because another is says which, and adds nothing to Ready and no event.
func TestConditionsThatFollow(t *testing.T) {
	bundle := &clustersecrets.FaultError{Reason: "Missing", Err: errors.New("secret c-talos does not exist")}
	render := &machineconfig.Error{Reason: machineconfig.ReasonRenderFailed, Err: errors.New("no")}
	byBundle, _ := failed(renderInputs{}, bundle)
	byRender, _ := failed(renderInputs{bundle: &corev1.Secret{}}, render)

	tests := map[string]struct {
		done outcome
		want []string
	}{
		"the bundle":         {byBundle, []string{bootstrapv1.SecretsBundleAvailableCondition}},
		"the render":         {byRender, []string{bootstrapv1.TalosConfigConfigRenderedCondition}},
		"what is waited for": {waiting(wait{"WaitingForOwner", "Waiting"}), []string{bootstrapv1.TalosConfigDataSecretAvailableCondition}},
		"a deleted machine":  {waiting(wait{"NotAvailable", "Machine w is being deleted"}), []string{bootstrapv1.TalosConfigDataSecretAvailableCondition}},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			config := &bootstrapv1.TalosConfig{}
			setCondition(config, bootstrapv1.TalosConfigDataSecretAvailableCondition, test.done.dataSecret)
			setCondition(config, bootstrapv1.SecretsBundleAvailableCondition, test.done.bundle)
			setCondition(config, bootstrapv1.TalosConfigConfigRenderedCondition, test.done.rendered)

			if diff := cmp.Diff(test.want, telling(config)); diff != "" {
				t.Error(diff)
			}

			for _, condition := range config.Status.Conditions {
				if condition.Status == "False" && condition.Message == "" {
					t.Errorf("%s is false and does not say why", condition.Type)
				}
			}

			recorder := events.NewFakeRecorder(3)
			(&Reconciler{Recorder: recorder}).recordFault(&bootstrapv1.TalosConfig{}, config)

			if len(recorder.Events) != 1 {
				t.Errorf("%d events", len(recorder.Events))
			}
		})
	}
}

// The API server takes no event whose note has more than 1024 bytes, while a condition may have several long faults.
func TestRecordFault(t *testing.T) {
	long := make([]*machineconfig.Error, maxFaults)
	for i := range long {
		long[i] = &machineconfig.Error{Err: errors.New(strings.Repeat(string(rune('a'+i))+"ä", 1024))}
	}

	message := faultMessage(long)
	if len(message) < maxFaults*1024 {
		t.Fatalf("the condition has %d bytes, want all %d faults", len(message), maxFaults)
	}

	config := &bootstrapv1.TalosConfig{}
	setCondition(config, bootstrapv1.TalosConfigConfigRenderedCondition, bad("RenderFailed", message))

	recorder := events.NewFakeRecorder(1)
	(&Reconciler{Recorder: recorder}).recordFault(&bootstrapv1.TalosConfig{}, config)

	note, ok := strings.CutPrefix(<-recorder.Events, "Warning RenderFailed ")
	if !ok || !strings.HasSuffix(note, "...") || !utf8.ValidString(note) || len(note) > 1024 || len(note) < 1000 {
		t.Errorf("got a note of %d bytes: %q", len(note), note)
	}
}
