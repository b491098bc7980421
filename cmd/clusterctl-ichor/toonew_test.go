// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/maesh-dev/ichor/internal/cli"
)

// TestTooNewForTheMachine checks that a kind, a field and a value that the machine's Talos does not know are refused by every command
// that renders, and that each says which Talos it takes.
func TestTooNewForTheMachine(t *testing.T) {
	t.Parallel()

	const volume = "{name: data, provisioning: {diskSelector: {match: '!system_disk'}, maxSize: 5GiB}"

	for name, tc := range map[string]struct{ contract, add, want string }{
		"kind": {
			"v1.13", document("KernelModuleConfig", "kernelModuleConfig", "{name: nvme_tcp}"),
			"document kind KernelModuleConfig needs Talos v1.14 or newer, and the machine runs v1.13.0",
		},
		"field": {
			"v1.12", document("UserVolumeConfig", "userVolumeConfig", volume+", mount: {secure: true}}"),
			"field /mount of UserVolumeConfig needs Talos v1.13 or newer, and the machine runs v1.12.0",
		},
		"value": {
			"v1.13", document("UserVolumeConfig", "userVolumeConfig", volume+", filesystem: {type: btrfs}}"),
			"field /filesystem/type of UserVolumeConfig: btrfs needs Talos v1.14 or newer, and the machine runs v1.13.0",
		},
		"argument given twice": {
			"v1.13", document("Config", "config", "{machine: {kubelet: {extraArgs: {feature-gates: [A=true, B=true]}}}}"),
			"needs Talos v1.14 or newer, and the machine runs v1.13.0",
		},
	} {
		for _, command := range []string{"validate", "render"} {
			t.Run(name+"/"+command, func(t *testing.T) {
				t.Parallel()
				g := NewWithT(t)

				// Talos 1.12 goes with an older Kubernetes than the fixture's.
				cluster := strings.NewReplacer("configContract: v1.14", "configContract: "+tc.contract, "version: v1.36.1", "version: v1.35.1").Replace(plainCluster)

				got := run(cluster+"---\n"+tc.add, command, "-f", "-")
				g.Expect(got.code).To(Equal(cli.ExitFindings), "%s", got)
				g.Expect(got.out + got.errOut).To(ContainSubstring(tc.want))

				newer := strings.Replace(cluster, "configContract: "+tc.contract, "configContract: v1.14", 1)
				if name != "argument given twice" { // in the newest format it has another place
					g.Expect(run(newer+"---\n"+tc.add, command, "-f", "-").code).To(BeZero(), "the newest Talos takes it")
				}
			})
		}
	}
}
