// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/version"
)

// TestOlderTalosIsNotGivenWhatItCannotRead renders patches whose kinds and fields an older Talos knows, and whose values it does not.
func TestOlderTalosIsNotGivenWhatItCannotRead(t *testing.T) {
	t.Parallel()

	const (
		twoGates = "{kind: Config, config: {machine: {kubelet: {extraArgs: {feature-gates: [A=true, B=true]}}}}}"
		oneGate  = "{kind: Config, config: {machine: {kubelet: {extraArgs: {feature-gates: [A=true]}}}}}"
		size     = "{kind: UserVolumeConfig, userVolumeConfig: {name: data, provisioning: {diskSelector: {match: '!system_disk'}, maxSize: -5GiB}}}"
		module   = "{kind: KernelModuleConfig, kernelModuleConfig: {name: nvme_tcp}}"
		trim     = "{kind: UserVolumeConfig, userVolumeConfig: {name: data, provisioning: {diskSelector: {match: '!system_disk'}, maxSize: 5GiB}, trim: {}}}"
		btrfs    = "{kind: UserVolumeConfig, userVolumeConfig: {name: data, provisioning: {diskSelector: {match: '!system_disk'}, maxSize: 5GiB}, filesystem: {type: btrfs}}}"
		volume   = "{kind: VolumeConfig, volumeConfig: {name: LOG, provisioning: {maxSize: 5GiB}}}"
	)

	tests := map[string]struct {
		contract, document string
		want               []string
	}{
		"argument with two values": {"v1.12", twoGates, []string{
			"Config | /machine/kubelet/extraArgs/feature-gates/0 | v1.14",
			"Config | /machine/kubelet/extraArgs/feature-gates/1 | v1.14",
		}},
		"argument with two values, 1.13": {"v1.13", twoGates, []string{
			"Config | /machine/kubelet/extraArgs/feature-gates/0 | v1.14",
			"Config | /machine/kubelet/extraArgs/feature-gates/1 | v1.14",
		}},
		"kind":                      {"v1.13", module, []string{"KernelModuleConfig/nvme_tcp |  | v1.14"}},
		"kind, new enough":          {"v1.14", module, nil},
		"field":                     {"v1.12", trim, []string{"UserVolumeConfig/data | /trim | v1.14"}},
		"file system":               {"v1.13", btrfs, []string{"UserVolumeConfig/data | /filesystem/type | v1.14"}},
		"argument with one value":   {"v1.12", oneGate, nil},
		"negative size":             {"v1.12", size, []string{"UserVolumeConfig/data | /provisioning/maxSize | v1.13"}},
		"negative size, new enough": {"v1.13", size, nil},
		"system volume":             {"v1.13", volume, []string{"VolumeConfig/LOG | /name | v1.14"}},
		"system volume, new enough": {"v1.14", volume, nil},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			in := input(t, tc.contract, false)
			in.Patches = append(in.Patches, patch(t, "metadata: {name: p}\nspec: {layer: Cluster, clusterName: c1, documents: ["+tc.document+"]}"))

			_, err := machineconfig.Render(in)

			var got []string

			for _, fault := range machineconfig.Errors(err) {
				tooNew, ok := errors.AsType[*version.TooNewError](fault)
				if !ok {
					t.Errorf("not about an older Talos: %v", fault)

					continue
				}

				got = append(got, fmt.Sprintf("%s | %s | %s", fault.Document, fault.Field, tooNew.Since))
			}

			slices.Sort(got)

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
