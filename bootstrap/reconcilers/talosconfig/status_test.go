// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
		"shortened":      {faults(strings.Repeat("x", maxFaultLength+1)), strings.Repeat("x", maxFaultLength) + "..."},
		"not in a rune":  {faults(strings.Repeat("x", maxFaultLength-1) + "äöü"), strings.Repeat("x", maxFaultLength-1) + "..."},
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
			err: fmt.Errorf("render: %w", &bundleError{"Missing", errors.New("secret c-talos does not exist")}),
			want: outcome{
				dataSecret: bad("NotAvailable", ""), bundle: bad("Missing", "secret c-talos does not exist"), rendered: bad("WaitingForInputs", ""),
			},
			wantTerminal: true,
		},
		"inputs": {
			err: errors.Join(
				&machineconfig.Error{Reason: machineconfig.ReasonInvalidReference, Err: errors.New("b")},
				&machineconfig.Error{Reason: machineconfig.ReasonRenderFailed, Err: errors.New("a")},
			),
			want:         outcome{dataSecret: bad("NotAvailable", ""), rendered: bad("InvalidReference", "a; b")},
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
