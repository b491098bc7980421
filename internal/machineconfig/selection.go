// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/targeting"
	"github.com/maesh-dev/ichor/internal/version"
)

// SelectClusterConfig returns the one TalosClusterConfig that targets the Cluster, nil when none does, and an Error that
// names all of them when several do: then nothing is rendered until one is left.
func SelectClusterConfig(cluster *clusterv1.Cluster, configs []bootstrapv1.TalosClusterConfig) (*bootstrapv1.TalosClusterConfig, error) {
	var (
		selected []*bootstrapv1.TalosClusterConfig
		faults   []error
	)

	for i := range configs {
		config := &configs[i]
		if config.Namespace != cluster.Namespace {
			continue
		}

		ok, err := targeting.Cluster(config.Spec.ClusterTargeting, config.Namespace, cluster)
		if err != nil {
			faults = append(faults, &Error{
				Reason: ReasonRenderFailed,
				Source: Source{Layer: LayerSystem, Kind: KindTalosClusterConfig, Name: config.Name, Path: "spec"},
				Err:    err,
			})
		}

		if ok {
			selected = append(selected, config)
		}
	}

	if err := errors.Join(faults...); err != nil {
		return nil, err
	}

	switch len(selected) {
	case 0:
		return nil, nil
	case 1:
		return selected[0], nil
	}

	names := make([]string, len(selected))
	for i, config := range selected {
		names[i] = config.Name
	}

	slices.Sort(names)

	return nil, &Error{
		Reason: ReasonAmbiguousClusterConfig,
		Source: Source{Layer: LayerSystem, Kind: KindCluster, Name: cluster.Name},
		Err: fmt.Errorf("%d TalosClusterConfigs target the cluster: %s; at most one may, so change or delete the others",
			len(names), strings.Join(names, ", ")),
	}
}

// Pins are the config contracts that were decided earlier. They survive a move of the objects as annotations.
type Pins struct {
	// Machine is the contract of the machine's first render: annotation of its data Secret, and status of its TalosConfig.
	Machine string

	// Cluster is the contract of the cluster's first render: annotation of the bundle Secret.
	Cluster string
}

// MachinePin is the contract of Pins that a machine is pinned to. A Machine's is that of its first render, for life. A MachinePool goes on to
// get new instances, so what its TalosConfig says now is a request for those; when it says nothing, they get what the others have.
func MachinePin(talosConfig *bootstrapv1.TalosConfig, machine Machine) string {
	if machine.Kind == KindMachinePool && talosConfig.Spec.ConfigContract != "" {
		return ""
	}

	return talosConfig.Status.ConfigContract
}

// SelectContract returns the config contract of a machine: the one that it was first rendered with, else its TalosConfig's,
// else the TalosClusterConfig's, else the one pinned for the cluster, else the minor of the cluster's Talos version. When
// none says it, the Error asks for it: nothing is guessed, because a newer provider would then silently change old clusters.
func SelectContract(talosConfig *bootstrapv1.TalosConfig, clusterConfig *bootstrapv1.TalosClusterConfig, pins Pins) (version.Contract, error) {
	type candidate struct {
		value string
		fault Error
	}

	candidates := []candidate{
		{pins.Machine, Error{Source: Source{Layer: LayerBase, Kind: KindTalosConfig, Name: talosConfig.Name, Path: "status.configContract"}}},
		{talosConfig.Spec.ConfigContract, Error{Source: Source{Layer: LayerBase, Kind: KindTalosConfig, Name: talosConfig.Name, Path: "spec.configContract"}}},
	}

	if clusterConfig != nil {
		source := Source{Layer: LayerBase, Kind: KindTalosClusterConfig, Name: clusterConfig.Name, Path: "spec.talos.configContract"}
		candidates = append(candidates, candidate{clusterConfig.Spec.Talos.ConfigContract, Error{Source: source}})
	}

	candidates = append(candidates, candidate{pins.Cluster, Error{}})

	for _, each := range candidates {
		if each.value == "" {
			continue
		}

		contract, err := version.ParseContract(each.value)
		if err != nil {
			fault := each.fault
			fault.Reason, fault.Err = ReasonRenderFailed, err

			return version.Contract{}, &fault
		}

		return contract, nil
	}

	if clusterConfig != nil && clusterConfig.Spec.Talos.Version != "" {
		talos, err := version.ParseTalos(clusterConfig.Spec.Talos.Version)
		if err != nil {
			return version.Contract{}, &Error{
				Reason: ReasonRenderFailed,
				Source: Source{Layer: LayerBase, Kind: KindTalosClusterConfig, Name: clusterConfig.Name, Path: "spec.talos.version"},
				Err:    err,
			}
		}

		return talos.Contract(), nil
	}

	return version.Contract{}, &Error{
		Reason: ReasonContractUnknown,
		Source: Source{Layer: LayerBase, Kind: KindTalosConfig, Name: talosConfig.Name},
		Err: errors.New("nothing says which Talos the machine boots: set spec.talos.version in a TalosClusterConfig that targets the cluster, " +
			"or spec.configContract here"),
	}
}

// talosSettings are what the cluster and the first matching pool say of a machine's Talos.
type talosSettings struct {
	version, schematicID string
	installer            bootstrapv1.InstallerSpec
	source               Source
}

func settingsFor(config *bootstrapv1.TalosClusterConfig, machineLabels map[string]string) (talosSettings, error) {
	if config == nil {
		return talosSettings{}, nil
	}

	spec := config.Spec.Talos
	settings := talosSettings{
		version: spec.Version, schematicID: spec.SchematicID, installer: spec.Installer,
		source: Source{Layer: LayerSystem, Kind: KindTalosClusterConfig, Name: config.Name, Path: "spec.talos"},
	}

	for i := range spec.Pools {
		pool := &spec.Pools[i]
		path := fmt.Sprintf("spec.talos.pools[%s]", pool.Name)

		selector, err := metav1.LabelSelectorAsSelector(pool.MachineSelector)
		if err != nil {
			source := settings.source
			source.Path = path

			return talosSettings{}, &Error{Reason: ReasonRenderFailed, Source: source, Field: "machineSelector", Err: err}
		}

		if !selector.Matches(labels.Set(machineLabels)) {
			continue
		}

		settings.version = cmp.Or(pool.Version, settings.version)
		settings.schematicID = cmp.Or(pool.SchematicID, settings.schematicID)
		settings.installer.Registry = cmp.Or(pool.Installer.Registry, settings.installer.Registry)
		settings.installer.Platform = cmp.Or(pool.Installer.Platform, settings.installer.Platform)
		settings.installer.SecureBoot = cmp.Or(pool.Installer.SecureBoot, settings.installer.SecureBoot)
		settings.source.Path = path

		break
	}

	return settings, nil
}

// SelectPatches returns the patches of a machine in the order in which they apply: those that select it, and those that its TalosConfig
// refers to. Input needs no References for it. An error is one that Render reports too; the patches that could be selected come with it.
func SelectPatches(in Input) ([]*Patch, error) { return selectPatches(&in) }

// selectPatches returns the patches of a machine in the order in which they apply.
func selectPatches(in *Input) ([]*Patch, error) {
	var (
		faults   []error
		selected = map[Layer][]*Patch{}
		byName   = make(map[string]*Patch, len(in.Patches))
		refs     = in.TalosConfig.Spec.PatchRefs
	)

	for _, patch := range in.Patches {
		if patch.object.Namespace != in.Cluster.Namespace {
			continue
		}

		byName[patch.object.Name] = patch

		ok, err := patch.targets(in)
		if err != nil {
			faults = append(faults, patch.fault("spec", err))
		}

		referenced := slices.ContainsFunc(refs, func(ref bootstrapv1.PatchReference) bool { return ref.Name == patch.object.Name })
		if ok && !referenced {
			layer := Layer(patch.object.Spec.Layer)
			selected[layer] = append(selected[layer], patch)
		}
	}

	var ordered []*Patch

	for _, layer := range patchLayers {
		slices.SortFunc(selected[layer], comparePatches)
		ordered = append(ordered, selected[layer]...)

		if layer != LayerPool {
			continue
		}

		for i, ref := range refs {
			patch, err := referencedPatch(in, byName, i, ref.Name)
			if err != nil {
				faults = append(faults, err)

				continue
			}

			ordered = append(ordered, patch)
		}
	}

	return ordered, errors.Join(faults...)
}

func referencedPatch(in *Input, byName map[string]*Patch, index int, name string) (*Patch, error) {
	fault := &Error{
		Reason: ReasonInvalidReference,
		Source: Source{Layer: LayerPool, Kind: KindTalosConfig, Name: in.TalosConfig.Name, Path: fmt.Sprintf("spec.patchRefs[%d]", index)},
	}

	patch, ok := byName[name]
	if !ok {
		fault.Err = fmt.Errorf("TalosConfigPatch %q does not exist in the namespace: create it or remove the reference", name)

		return nil, fault
	}

	if role := patch.object.Spec.Role; role != "" && role != in.Machine.Role() {
		fault.Err = fmt.Errorf("TalosConfigPatch %q is for role %s, and the machine is a %s: remove the reference", name, role, in.Machine.Role())

		return nil, fault
	}

	return patch.inLayer(LayerPool), nil
}

// strayReferences warns of patches that are referred to, and say themselves that they are for other clusters.
func strayReferences(in *Input) []string {
	var warnings []string

	for i, ref := range in.TalosConfig.Spec.PatchRefs {
		index := slices.IndexFunc(in.Patches, func(patch *Patch) bool {
			return patch.object.Namespace == in.Cluster.Namespace && patch.object.Name == ref.Name
		})
		if index < 0 {
			continue
		}

		target := in.Patches[index].object.Spec.ClusterTargeting
		if target.ClusterName == "" && target.ClusterSelector == nil {
			continue
		}

		if ok, err := targeting.Cluster(target, in.Cluster.Namespace, in.Cluster); err == nil && !ok {
			source := Source{Layer: LayerPool, Kind: KindTalosConfig, Name: in.TalosConfig.Name, Path: fmt.Sprintf("spec.patchRefs[%d]", i)}
			warnings = append(warnings, fmt.Sprintf(
				"%s: TalosConfigPatch %q targets other clusters, and applies here because it is referred to: remove its clusterName or clusterSelector if that is meant, or the reference if not",
				source, ref.Name))
		}
	}

	return warnings
}

func comparePatches(a, b *Patch) int {
	return cmp.Or(
		cmp.Compare(a.priority(), b.priority()),
		cmp.Compare(a.object.Name, b.object.Name),
	)
}
