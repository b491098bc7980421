// SPDX-License-Identifier: Apache-2.0

package machineconfig_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	machineryconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/version"
)

// controlPlaneTaint keeps pods off control planes, and is what allowSchedulingOnControlPlanes is about.
const controlPlaneTaint = "node-role.kubernetes.io/control-plane"

// on is the contract and role that a setting's effect is looked at.
type on struct {
	contract     version.Contract
	controlPlane bool
}

func (o on) modern() bool { return o.contract.AtLeast(14) }

// setting is one field of TalosClusterConfig, TalosConfig or the Machine.
type setting struct {
	change func(*testing.T, *machineconfig.Input)

	// see gives what the config says of it, in whichever document, and want what it should say. Where effective holds, the config
	// must say something else without the setting, and elsewhere the same.
	see       func(rendered, on) any
	want      func(on) any
	effective func(on) bool
}

func everywhere(on) bool        { return true }
func onControlPlanes(o on) bool { return o.controlPlane }
func onWorkers(o on) bool       { return !o.controlPlane }

// whereManifestsAre is where the pod network is spoken of: in the legacy layout on every machine, though control planes deploy it.
func whereManifestsAre(o on) bool { return o.controlPlane || !o.modern() }

func fixed(value any) func(on) any   { return func(on) any { return value } }
func ifModern(a, b any) func(on) any { return choose(on.modern, a, b) }

func choose(condition func(on) bool, then, otherwise any) func(on) any {
	return func(o on) any {
		if condition(o) {
			return then
		}

		return otherwise
	}
}

// rendered is a config as a node decodes it.
type rendered struct {
	machineryconfig.Provider

	warnings []string
}

// legacy is the legacy document, with nothing in it nil that the tests look into.
func (r rendered) legacy() *v1alpha1.Config {
	document := *r.RawV1Alpha1()
	if document.ClusterConfig == nil {
		document.ClusterConfig = &v1alpha1.ClusterConfig{}
	}

	machine := *document.MachineConfig
	document.MachineConfig = &machine

	if machine.MachineFeatures == nil {
		machine.MachineFeatures = &v1alpha1.FeaturesConfig{}
	}

	if machine.MachineKubelet == nil {
		machine.MachineKubelet = &v1alpha1.KubeletConfig{}
	}

	return &document
}

func documentsOf[T any](r rendered) []T {
	var found []T

	for _, document := range r.Documents() {
		if typed, ok := document.(T); ok {
			found = append(found, typed)
		}
	}

	return found
}

// first is the one document of a type, or an empty one.
func first[D any](r rendered) *D {
	if documents := documentsOf[*D](r); len(documents) > 0 {
		return documents[0]
	}

	return new(D)
}

func renderOf(t *testing.T, in machineconfig.Input) rendered {
	t.Helper()

	config, err := machineconfig.Render(in)
	if err != nil {
		t.Fatal(err)
	}

	provider, err := configloader.NewFromBytes(config.Bytes)
	if err != nil {
		t.Fatal(err)
	}

	return rendered{provider, config.Warnings}
}

// TestSettings sets each setting alone and looks for its effect in the config, for each supported contract and both roles.
func TestSettings(t *testing.T) {
	t.Parallel()

	for name, each := range settings {
		for _, contract := range version.Supported() {
			for _, controlPlane := range []bool{false, true} {
				o := on{contract, controlPlane}
				t.Run(fmt.Sprintf("%s/%s/control plane %t", name, contract, controlPlane), func(t *testing.T) {
					t.Parallel()

					without := renderOf(t, input(t, contract.String(), controlPlane))

					in := input(t, contract.String(), controlPlane)
					each.change(t, &in)
					with := renderOf(t, in)

					before, after := each.see(without, o), each.see(with, o)

					want := before
					if each.effective(o) {
						want = each.want(o)
					}

					if diff := cmp.Diff(want, after); diff != "" {
						t.Errorf("with the setting (-want +got):\n%s", diff)
					}

					if each.effective(o) == cmp.Equal(before, after) {
						t.Errorf("without the setting %v, with it %v, effective %t", before, after, each.effective(o))
					}

					if len(with.warnings) > 0 {
						t.Errorf("warnings of an ordinary setting: %q", with.warnings)
					}
				})
			}
		}
	}
}
