// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"

	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/version"
)

// everyContract is every one that ParseContract takes: clusters keep theirs for life.
func everyContract(t *testing.T) []version.Contract {
	t.Helper()

	var contracts []version.Contract

	for minor := range 100 {
		if contract, err := version.ParseContract(fmt.Sprintf("v1.%d", minor)); err == nil {
			contracts = append(contracts, contract)
		}
	}

	if oldest, newest := contracts[0].String(), contracts[len(contracts)-1]; oldest != "v1.0" || newest != version.Newest() {
		t.Fatalf("contracts from %s to %s, want v1.0 to %s", oldest, newest, version.Newest())
	}

	return contracts
}

// TestEveryContract renders for a machine of every contract, which must load and validate.
func TestEveryContract(t *testing.T) {
	t.Parallel()

	for _, contract := range everyContract(t) {
		for _, controlPlane := range []bool{false, true} {
			for variant, with := range variants {
				if variant == "all-settings" && !slices.Contains(version.Supported(), contract) {
					continue // some settings have no place in old contracts, and the version is the contract's own
				}

				t.Run(fmt.Sprintf("%s/%s/control plane %t", contract, variant, controlPlane), func(t *testing.T) {
					t.Parallel()

					in := input(t, contract.String(), controlPlane)
					withInstall(&in)
					with(t, &in)

					config, err := machineconfig.Render(in)
					if err != nil {
						t.Fatal(err)
					}

					loadsAndValidates(t, config.Bytes)
				})
			}
		}
	}
}

// TestEncryptionKeys wants each key of the bundle under the provider of its own cipher, as the API server that wrote the
// cluster's data had it.
func TestEncryptionKeys(t *testing.T) {
	t.Parallel()

	const (
		aescbc    = "YWVzY2JjLWtleS1vZi0zMi1ieXRlcy1leGFjdGx5ISE="
		secretbox = "c2VjcmV0Ym94LWtleS1vZi0zMi1ieXRlcy1leGFjdCE="
	)

	bundles := map[string]struct {
		aescbc, secretbox string
		want              []string
	}{
		"AES-CBC only":   {aescbc: aescbc, want: []string{"aescbc key1 " + aescbc}},
		"both":           {aescbc: aescbc, secretbox: secretbox, want: []string{"secretbox key2 " + secretbox, "aescbc key1 " + aescbc}},
		"secretbox only": {secretbox: secretbox, want: []string{"secretbox key2 " + secretbox}},
	}

	for name, keys := range bundles {
		for _, contract := range []string{"v1.2", "v1.12", "v1.13", "v1.14"} {
			t.Run(name+"/"+contract, func(t *testing.T) {
				t.Parallel()

				in := input(t, contract, true)
				in.Bundle.Secrets.AESCBCEncryptionSecret, in.Bundle.Secrets.SecretboxEncryptionSecret = keys.aescbc, keys.secretbox

				if diff := cmp.Diff(keys.want, encryptionKeys(renderOf(t, in), in.Contract)); diff != "" {
					t.Errorf("keys (-want +got):\n%s", diff)
				}

				in.Machine.ControlPlane = false
				in.Machine.Labels = nil

				if got := encryptionKeys(renderOf(t, in), in.Contract); len(got) > 0 {
					t.Errorf("a worker has keys: %d", len(got))
				}
			})
		}
	}
}

// encryptionKeys are provider, name and secret of each key, the one that new data is written with first. In the legacy layout Talos
// makes the providers: secretbox with key2 before AES-CBC with key1.
func encryptionKeys(r rendered, contract version.Contract) []string {
	var keys []string

	if !contract.AtLeast(14) {
		if secret := r.legacy().ClusterConfig.ClusterSecretboxEncryptionSecret; secret != "" {
			keys = append(keys, "secretbox key2 "+secret)
		}

		if secret := r.legacy().ClusterConfig.ClusterAESCBCEncryptionSecret; secret != "" {
			keys = append(keys, "aescbc key1 "+secret)
		}

		return keys
	}

	resources, _ := first[k8s.KubeEtcdEncryptionConfigV1Alpha1](r).Config.Object["resources"].([]any)
	for _, resource := range resources {
		providers, _ := resource.(map[string]any)["providers"].([]any)
		for _, provider := range providers {
			for cipher, settings := range provider.(map[string]any) {
				of, _ := settings.(map[string]any)
				list, _ := of["keys"].([]any)

				for _, key := range list {
					entry, _ := key.(map[string]any)
					keys = append(keys, fmt.Sprintf("%s %s %s", cipher, entry["name"], entry["secret"]))
				}
			}
		}
	}

	return keys
}
