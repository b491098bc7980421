// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"

	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
	"github.com/maesh-dev/ichor/internal/version"
)

// TestWhatIsProtected has the list by itself, so that a row that is lost where the renderer takes it from is missed here.
func TestWhatIsProtected(t *testing.T) {
	t.Parallel()

	const (
		secret   = "belongs to the cluster's secrets bundle: no patch may change it"
		identity = "comes from the Cluster and the Machine: no patch may change it"
		manager  = "hands the machine over to another manager: no patch may set it"
	)

	want := map[string]string{
		"Config /machine/type":                      identity,
		"Config /machine/token":                     secret,
		"Config /machine/ca":                        secret,
		"Config /machine/acceptedCAs":               secret,
		"Config /cluster/id":                        secret,
		"Config /cluster/secret":                    secret,
		"Config /cluster/token":                     secret,
		"Config /cluster/clusterName":               identity,
		"Config /cluster/controlPlane/endpoint":     identity,
		"Config /cluster/aescbcEncryptionSecret":    secret,
		"Config /cluster/secretboxEncryptionSecret": secret,
		"Config /cluster/ca":                        secret,
		"Config /cluster/acceptedCAs":               secret,
		"Config /cluster/aggregatorCA":              secret,
		"Config /cluster/serviceAccount":            secret,
		"Config /cluster/etcd/ca":                   secret,
		"DiscoveryIdentityConfig":                   secret,
		"KubeAPIServerCAConfig":                     secret,
		"KubeAggregatorCAConfig":                    secret,
		"KubeEtcdEncryptionConfig":                  secret,
		"KubeServiceAccountConfig":                  secret,
		"KubeClusterConfig":                         identity,
		"SideroLinkConfig":                          manager,
	}

	got := map[string]string{}

	for _, field := range machineconfigv1alpha1.OwnedFields() {
		got[fmt.Sprintf("%s %s", field.Kind, field.Pointer)] = machineconfig.Protected(merge.ID{Kind: string(field.Kind)}, field.Pointer).Error()
	}

	for _, kind := range machineconfigv1alpha1.DeniedKinds() {
		got[kind] = machineconfig.Protected(merge.ID{Kind: kind}, "/any").Error()
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestKindsAreOfferedOrProtected: Talos has no kind that patches can hold and that is the base's as well, and none that is neither.
func TestKindsAreOfferedOrProtected(t *testing.T) {
	t.Parallel()

	for _, kind := range version.Kinds() {
		name := kind
		if kind == "v1alpha1" {
			name = string(machineconfigv1alpha1.KindConfig)
		}

		_, offered := reflect.TypeFor[machineconfigv1alpha1.Document]().FieldByName(name)
		if protected := machineconfig.Protected(merge.ID{Kind: kind}, "/any") != nil; offered == protected {
			t.Errorf("%s: offered %v, protected %v: decide in the generator's table of kinds", kind, offered, protected)
		}
	}

	for _, kind := range machineconfigv1alpha1.DeniedKinds() {
		if !slices.Contains(version.Kinds(), kind) {
			t.Errorf("%s is no kind of Talos", kind)
		}
	}
}

// TestSecretsOfTheBaseAreProtected asks Talos what is secret in the configs that no patch has touched.
func TestSecretsOfTheBaseAreProtected(t *testing.T) {
	t.Parallel()

	for _, contract := range everyContract(t) {
		for _, controlPlane := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/control plane %t", contract, controlPlane), func(t *testing.T) {
				t.Parallel()

				in := input(t, contract.String(), controlPlane)
				withInstall(&in)

				rendered, err := machineconfig.Render(in)
				if err != nil {
					t.Fatal(err)
				}

				loaded, err := configloader.NewFromBytes(rendered.Bytes)
				if err != nil {
					t.Fatal(err)
				}

				masked := leavesOf(loaded.RedactSecrets("REDACTED").Documents())
				secrets := 0

				for leaf, value := range leavesOf(loaded.Documents()) {
					if masked[leaf] == value {
						continue
					}

					secrets++

					if machineconfig.Protected(leaf.id, leaf.pointer) == nil {
						t.Errorf("%s %s is secret for Talos, and a patch could change it", leaf.id, leaf.pointer)
					}
				}

				if secrets < 3 {
					t.Errorf("Talos redacts %d values; every config has a token, a bootstrap token and a cluster secret", secrets)
				}
			})
		}
	}
}

type leafAddress struct {
	id      merge.ID
	pointer string
}

func leavesOf(documents []config.Document) map[leafAddress]string {
	leaves := map[leafAddress]string{}

	for _, document := range documents {
		for _, leaf := range merge.LeavesOf(document) {
			leaves[leafAddress{merge.IDOf(document), leaf.Pointer}] = leaf.Value.Reveal()
		}
	}

	return leaves
}
