// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A selector that nobody could mean is counted, and its parts are not looked at.
func TestLargeSelector(t *testing.T) {
	labels, values := make([]string, 65), make([]string, 257)
	for i := range labels {
		labels[i] = fmt.Sprintf("l%d: a b", i)
	}

	for i := range values {
		values[i] = fmt.Sprintf("'a b%d'", i)
	}

	tests := map[string]struct{ selector, want string }{
		"many labels": {
			"{matchLabels: {" + strings.Join(labels, ", ") + "}}",
			"spec.clusterSelector: has 65 requirements, at most 64 are allowed: give the objects a label for what they have in common, and select by that",
		},
		"many values": {
			"{matchExpressions: [{key: a, operator: In, values: [" + strings.Join(values, ", ") + "]}]}",
			"spec.clusterSelector.matchExpressions: has 257 values, at most 256 are allowed: give the objects a label for what they have in common, and select by that",
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			report := look(t, "TalosConfigPatch", "{layer: Cluster, clusterSelector: "+test.selector+", deletions: [{kind: Config, path: /machine/sysctls}]}")

			var got []string
			for _, fault := range report.Faults {
				got = append(got, fault.Path()+": "+fault.Message)
			}

			if diff := cmp.Diff([]string{test.want}, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}

	allowed := "{matchLabels: {" + strings.Join(labels[:64], ", ") + "}}"

	report := look(t, "TalosConfigPatch", "{layer: Cluster, clusterSelector: "+allowed+", deletions: [{kind: Config, path: /machine/sysctls}]}")
	if len(report.Faults) != 1 || !strings.Contains(report.Faults[0].Message, "a valid label must") {
		t.Errorf("the labels are not looked at: %+v", report.Faults)
	}
}
