// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/maesh-dev/ichor/test/tools"
)

// TestExplain asks kubectl what users ask it.
func TestExplain(t *testing.T) {
	t.Parallel()

	kubectl, err := tools.Path(t.Context(), tools.Kubectl)
	if err != nil {
		t.Fatal(err)
	}

	for path, want := range map[string][]string{
		"userVolumeConfig": {
			"Adds a volume, mounted at /var/mnt/<name>.", "configuration/block/uservolumeconfig", "Name of the volume", "Which one disk the volume is made on", "Encrypts the volume",
		},
		"userVolumeConfig.provisioning.diskSelector": {"CEL over disk and system_disk"},
		"userVolumeConfig.encryption":                {"Required: luks2 is the only one.", "Required: one or more ways to unlock the volume"},
		"userVolumeConfig.encryption.keys":           {"LUKS slot: 0, 1 and so on", "static", "Refused: a passphrase must not stand in a document; use nodeID, kms or tpm."},
		"registryAuthConfig":                         {"Refused: a credential; use passwordSecretRef.", "A key of a Secret of this namespace."},
		"wireguardConfig.privateKey":                 {"Refused: a credential; use privateKeySecretRef."},
		"config.machine.token":                       {"Refused: cluster secret; it comes from the secrets bundle."},
		"config.machine.acceptedCAs":                 {"Refused: trust root; use TalosClusterConfig.spec.acceptedCAsSecretRef."},
		"kubeStaticPodConfig.pod":                    {"Refused: whole pods are too large for the schema; use podFrom."},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()

			ctx, cancel := context.WithTimeout(t.Context(), harnessPatience)
			defer cancel()

			out, err := exec.CommandContext(ctx, kubectl, "--kubeconfig", kubeconfig, "explain", "talosconfigpatches.spec.documents."+path).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}

			// kubectl breaks lines.
			said := strings.Join(strings.Fields(string(out)), " ")

			for _, text := range want {
				if !strings.Contains(said, text) {
					t.Errorf("want %q in\n%s", text, out)
				}
			}
		})
	}
}
