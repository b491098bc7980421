// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	machineryconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	machinerysecrets "github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/version"
)

// Limits of the design, section "Speed" of rendering.
const (
	maxRenderTime      = 1.25
	maxRenderAllocs    = 1.3
	maxProvenanceTime  = 3
	kubernetesVersion  = "1.34.2"
	controlPlaneURL    = "https://api.example.com:6443"
	patchesPerMachine  = 5
	benchmarkNamespace = "default"
)

// modernPatches are five patches as the 1.14 format has them, legacyPatches as the older ones do: the same for both sides.
var (
	modernPatches = [patchesPerMachine]string{
		"kind: SysctlConfig\napiVersion: v1alpha1\nparams: {vm.max_map_count: '262144', net.core.somaxconn: '65535'}",
		"kind: TimeSyncConfig\napiVersion: v1alpha1\nntp: {servers: [ntp1.example.com, ntp2.example.com]}",
		"kind: UserVolumeConfig\napiVersion: v1alpha1\nname: data\nprovisioning: {diskSelector: {match: 'disk.transport == \"nvme\"'}, minSize: 10GiB, maxSize: 50%}",
		"kind: KubeNodeConfig\napiVersion: v1alpha1\nlabels: {example.com/rack: r1}\nannotations: {example.com/owner: storage}",
		"kind: RegistryMirrorConfig\napiVersion: v1alpha1\nname: ghcr.io\nendpoints: [{url: 'https://mirror.example.com/v2/ghcr.io', overridePath: true}]",
	}

	legacyPatches = [patchesPerMachine]string{
		"machine: {sysctls: {vm.max_map_count: '262144', net.core.somaxconn: '65535'}}",
		"machine: {time: {servers: [ntp1.example.com, ntp2.example.com]}}",
		modernPatches[2],
		"machine: {nodeLabels: {example.com/rack: r1}, nodeAnnotations: {example.com/owner: storage}}",
		modernPatches[4],
	}
)

// renderComparison is one machine, rendered by Ichor and by the bare calls of machinery.
type renderComparison struct {
	name     string
	input    machineconfig.Input
	contract *machineryconfig.VersionContract
	machine  machine.Type
	patches  [patchesPerMachine]string
}

func renderComparisons() ([]comparison, error) {
	machines, err := renderMachines()
	if err != nil {
		return nil, err
	}

	var comparisons []comparison

	for _, each := range machines {
		with := each.input
		with.Provenance = true

		comparisons = append(comparisons,
			comparison{
				name: "render " + each.name, subject: renderCall(each.input), baseline: each.bare,
				maxTime: maxRenderTime, maxAllocs: maxRenderAllocs,
			},
			comparison{
				name: "render " + each.name + ", provenance", subject: renderCall(with), baseline: each.bare,
				maxTime: maxProvenanceTime,
			},
		)
	}

	return comparisons, nil
}

func renderCall(in machineconfig.Input) func() error {
	return func() error {
		_, err := machineconfig.Render(in)

		return err
	}
}

func renderMachines() ([]renderComparison, error) {
	bundle, err := machinerysecrets.NewBundle(machinerysecrets.NewFixedClock(time.Unix(0, 0)), nil, machinerysecrets.WithECDSAServiceAccountKey())
	if err != nil {
		return nil, err
	}

	var machines []renderComparison

	for _, contract := range []string{"v1.13", "v1.14"} {
		for _, machineType := range []machine.Type{machine.TypeWorker, machine.TypeControlPlane} {
			each, err := renderMachine(bundle, contract, machineType)
			if err != nil {
				return nil, err
			}

			machines = append(machines, each)
		}
	}

	return machines, nil
}

func renderMachine(bundle *machinerysecrets.Bundle, contract string, machineType machine.Type) (renderComparison, error) {
	parsed, err := version.ParseContract(contract)
	if err != nil {
		return renderComparison{}, err
	}

	credentials, err := machineconfig.ResolveCredentials(nil, nil)
	if err != nil {
		return renderComparison{}, err
	}

	each := renderComparison{
		name:     fmt.Sprintf("%s %s", contract, machineType),
		contract: parsed.Machinery(), machine: machineType, patches: modernPatches,
		input: machineconfig.Input{
			Cluster: &clusterv1.Cluster{
				ObjectMeta: metav1.ObjectMeta{Name: "c1", Namespace: benchmarkNamespace},
				Spec:       clusterv1.ClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "api.example.com", Port: 6443}},
			},
			Machine: machineconfig.Machine{
				Name: "m1", Kind: machineconfig.KindMachine, KubernetesVersion: "v" + kubernetesVersion,
				ControlPlane: machineType == machine.TypeControlPlane,
			},
			Bundle:      bundle,
			Contract:    parsed,
			TalosConfig: &bootstrapv1.TalosConfig{ObjectMeta: metav1.ObjectMeta{Name: "m1", Namespace: benchmarkNamespace}},
			Credentials: credentials,
		},
	}

	if !parsed.Machinery().MultidocKubernetesConfigSupported() {
		each.patches = legacyPatches
	}

	for i, text := range each.patches {
		patch, err := typedPatch(fmt.Sprintf("p%d", i), text)
		if err != nil {
			return renderComparison{}, fmt.Errorf("patch %d: %w", i, err)
		}

		each.input.Patches = append(each.input.Patches, patch)
	}

	return each, nil
}

// typedPatch makes a TalosConfigPatch of a Talos document.
func typedPatch(name, text string) (*machineconfig.Patch, error) {
	var document map[string]any
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		return nil, err
	}

	kind, field := "Config", "config"

	if modern, ok := document["kind"].(string); ok {
		kind, field = modern, strings.ToLower(modern[:1])+modern[1:]

		delete(document, "kind")
		delete(document, "apiVersion")
	}

	data, err := yaml.Marshal(map[string]any{
		"metadata": map[string]any{"name": name, "namespace": benchmarkNamespace},
		"spec": map[string]any{
			"layer": "Cluster", "clusterName": "c1",
			"documents": []any{map[string]any{"kind": kind, field: document}},
		},
	})
	if err != nil {
		return nil, err
	}

	object := &bootstrapv1.TalosConfigPatch{}
	if err = yaml.UnmarshalStrict(data, object); err != nil {
		return nil, err
	}

	patch := machineconfig.ParsePatch(object)

	return patch, patch.Err()
}

type cloud struct{}

func (cloud) String() string        { return "cloud" }
func (cloud) RequiresInstall() bool { return false }
func (cloud) InContainer() bool     { return false }

// bare is what machinery alone needs: generate, load the patches, apply them, validate, encode.
func (r renderComparison) bare() error {
	generator, err := generate.NewInput("c1", controlPlaneURL, kubernetesVersion,
		generate.WithVersionContract(r.contract), generate.WithSecretsBundle(r.input.Bundle))
	if err != nil {
		return err
	}

	provider, err := generator.Config(r.machine)
	if err != nil {
		return err
	}

	patches := make([]configpatcher.Patch, len(r.patches))
	for i, text := range r.patches {
		if patches[i], err = configpatcher.LoadPatch([]byte(text)); err != nil {
			return err
		}
	}

	output, err := configpatcher.Apply(configpatcher.WithConfig(provider), patches)
	if err != nil {
		return err
	}

	if provider, err = output.Config(); err != nil {
		return err
	}

	if _, err = provider.ValidateAsClient(cloud{}, validation.WithLocal()); err != nil {
		return err
	}

	_, err = provider.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))

	return err
}
