// SPDX-License-Identifier: Apache-2.0

package invariants_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/invariants"
)

// log tells the same requests each time, so often.
type log struct {
	requests []harness.Request
	times    int
}

func (l *log) Next() ([]harness.Request, error) {
	if l.times--; l.times < 0 {
		return nil, nil
	}

	return l.requests, nil
}

const forever = 1 << 30

// A state in which something is written again and again is not steady, whatever the write changes.
func TestSteady(t *testing.T) {
	request := func(verb, resource, subresource string) []harness.Request {
		return []harness.Request{{Verb: verb, Resource: resource, Subresource: subresource, Namespace: "ns", Name: "x"}}
	}

	tests := map[string]struct {
		log        *log
		transcript func() string
		fault      string
	}{
		"nothing":              {log: &log{}},
		"reads":                {log: &log{requests: request("get", "secrets", ""), times: forever}},
		"a lease":              {log: &log{requests: request("update", "leases", ""), times: forever}},
		"events":               {log: &log{requests: request("create", "events", ""), times: forever}},
		"a write that ends":    {log: &log{requests: request("patch", "machines", ""), times: 3}},
		"elsewhere":            {log: &log{requests: []harness.Request{{Verb: "patch", Resource: "machines", Namespace: "other"}}, times: forever}},
		"writes":               {log: &log{requests: request("patch", "machines", "status"), times: forever}, fault: "m: patch machines/status x"},
		"deletions":            {log: &log{requests: request("delete", "secrets", ""), times: forever}, fault: "m: delete secrets x"},
		"calls of the nodes":   {log: &log{}, transcript: counting(forever), fault: "machines: cp1: Reboot"},
		"calls that end":       {log: &log{}, transcript: counting(3)},
		"a transcript at rest": {log: &log{}, transcript: func() string { return "cp1: boots\n" }},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			err := invariants.Steady(t.Context(), invariants.Quiet{
				Namespace: "ns", Requests: map[string]invariants.RequestLog{"m": test.log}, Transcript: test.transcript,
				For: 400 * time.Millisecond, Within: 2 * time.Second,
			})
			if test.fault == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
			} else {
				NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.fault)))
			}
		})
	}
}

// counting is a transcript that grows so often.
func counting(times int) func() string {
	seen := 0

	return func() string {
		seen++

		return fmt.Sprintf("cp1: boots\ncp1: Reboot %d\n", min(seen, times))
	}
}
