// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// A Machine keeps the format of its first render whatever is asked for later; a pool gets the one that is asked for, for its next instances.
func TestMachinePin(t *testing.T) {
	tests := map[string]struct {
		kind, spec, status, want string
	}{
		"a Machine":                       {"Machine", "", "v1.13", "v1.13"},
		"a Machine that asks for another": {"Machine", "v1.14", "v1.13", "v1.13"},
		"a pool":                          {"MachinePool", "", "v1.13", "v1.13"},
		"a pool that asks for another":    {"MachinePool", "v1.14", "v1.13", "v1.14"},
		"a pool that goes back":           {"MachinePool", "v1.13", "v1.14", "v1.13"},
		"a new pool":                      {"MachinePool", "", "", "v1.12"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			config := &bootstrapv1.TalosConfig{}
			config.Spec.ConfigContract, config.Status.ConfigContract = test.spec, test.status

			contract, err := machineconfig.SelectContract(config, nil, machineconfig.Pins{
				Machine: machineconfig.MachinePin(config, machineconfig.Machine{Kind: test.kind}), Cluster: "v1.12",
			})
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(test.want, contract.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
