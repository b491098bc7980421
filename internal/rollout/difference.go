// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
)

// Difference is something in which a machine is not as the spec of its control plane wants it.
type Difference struct {
	// Field of the TalosControlPlane's spec, as a path.
	Field string

	// Message says what is different, for the UpToDate condition and the plan. That of the version comes first and has the form which
	// Cluster API expects: "Version v1.35.4, v1.36.1 required".
	Message string

	// InPlace is true when the node can be changed; otherwise only another machine is as the spec wants it.
	InPlace bool
}

// rolloutAfter is the Field of a machine that the user wants replaced whatever it is like.
const rolloutAfter = "rollout.after"

// Stored is what the management cluster has of a machine. What is missing makes no difference: it may have been made by hand, or could
// not be read, and neither is a reason to replace a machine.
type Stored struct {
	Machine *clusterv1.Machine

	// Config is its TalosConfig, or nil.
	Config *bootstrapv1.TalosConfig

	// InfrastructureAnnotations are those of its infrastructure machine, or nil.
	InfrastructureAnnotations map[string]string

	// Contract is the config contract of the cluster's machines, for one whose own is not noted down; empty when that is not known.
	Contract string
}

// Differences compares a machine with the spec of its control plane. The comparison is by meaning: an empty list is none, a default that
// is spelled out is the default, and a format that is said is the one that was pinned. So neither an upgrade of Ichor nor one of the
// libraries below it makes a machine differ.
//
// Not compared is what reaches machines without a rollout (metadata, timeouts, taints, readiness gates), and what the infrastructure
// provider or the node decides (failure domain, provider ID).
func Differences(spec *controlplanev1.TalosControlPlaneSpec, stored Stored, now time.Time) []Difference {
	var out []Difference

	if have := stored.Machine.Spec.Version; have != "" && have != spec.Version {
		out = append(out, Difference{"version", fmt.Sprintf("Version %s, %s required", have, spec.Version), true})
	}

	if stored.Config != nil {
		out = append(out, configDifferences(&spec.TalosConfigSpec, stored)...)
	}

	if d := infrastructureDifference(spec.MachineTemplate.Spec.InfrastructureRef, stored); d != nil {
		out = append(out, *d)
	}

	if after := spec.Rollout.After.Time; !after.IsZero() && !after.After(now) && stored.Machine.CreationTimestamp.Time.Before(after) {
		out = append(out, Difference{rolloutAfter, "Made before spec.rollout.after", false})
	}

	return out
}

func infrastructureDifference(want clusterv1.ContractVersionedObjectReference, stored Stored) *Difference {
	name, known := stored.InfrastructureAnnotations[clusterv1.TemplateClonedFromNameAnnotation]
	groupKind, alsoKnown := stored.InfrastructureAnnotations[clusterv1.TemplateClonedFromGroupKindAnnotation]

	if !known || !alsoKnown || (name == want.Name && groupKind == want.GroupKind().String()) {
		return nil
	}

	return &Difference{
		"machineTemplate.spec.infrastructureRef",
		fmt.Sprintf("Made from %s %s, %s %s required", groupKind, name, want.GroupKind(), want.Name), false,
	}
}

// configDifferences compares field by field, since some can be changed on a running node and others not.
func configDifferences(spec *bootstrapv1.TalosConfigSpec, stored Stored) []Difference {
	have, want := settled(stored.Config.Spec), settled(*spec)

	have.ConfigContract = cmp.Or(have.ConfigContract, stored.Config.Status.ConfigContract, stored.Contract)

	// Who says no format claims none: that of an existing machine is for life, also when the cluster's is raised for new ones.
	want.ConfigContract = cmp.Or(want.ConfigContract, have.ConfigContract)

	// And what is not known of a machine is no difference.
	have.ConfigContract = cmp.Or(have.ConfigContract, want.ConfigContract)

	var out []Difference

	for _, field := range configFields {
		if !apiequality.Semantic.DeepEqual(field.get(&have), field.get(&want)) {
			out = append(out, Difference{"talosConfigSpec." + field.name, "TalosConfig differs in " + field.name, field.inPlace})
		}
	}

	return out
}

// configField is a field of a TalosConfigSpec, or of its parts.
type configField struct {
	name    string
	inPlace bool
	get     func(*bootstrapv1.TalosConfigSpec) any
}

// configFields are all of them: a test counts. The disk, the format and the name of a node are for life.
var configFields = []configField{
	{"platform", true, func(s *bootstrapv1.TalosConfigSpec) any { return s.Platform }},
	{"install.disk", false, func(s *bootstrapv1.TalosConfigSpec) any { return s.Install.Disk }},
	{"install.diskSelector", false, func(s *bootstrapv1.TalosConfigSpec) any { return s.Install.DiskSelector }},
	{"install.wipe", false, func(s *bootstrapv1.TalosConfigSpec) any { return s.Install.Wipe }},
	{"install.image", true, func(s *bootstrapv1.TalosConfigSpec) any { return s.Install.Image }},
	{"install.extraKernelArgs", true, func(s *bootstrapv1.TalosConfigSpec) any { return s.Install.ExtraKernelArgs }},
	{"hostname.source", false, func(s *bootstrapv1.TalosConfigSpec) any { return s.Hostname.Source }},
	{"configContract", false, func(s *bootstrapv1.TalosConfigSpec) any { return s.ConfigContract }},
	{"patchRefs", true, func(s *bootstrapv1.TalosConfigSpec) any { return s.PatchRefs }},
}

// settled spells the defaults out.
func settled(spec bootstrapv1.TalosConfigSpec) bootstrapv1.TalosConfigSpec {
	installs := spec.Install.Disk != "" || spec.Install.DiskSelector != ""

	if spec.Platform == "" {
		spec.Platform = bootstrapv1.PlatformCloud
		if installs {
			spec.Platform = bootstrapv1.PlatformMetal
		}
	}

	if spec.Hostname.Source == "" {
		spec.Hostname.Source = bootstrapv1.HostnameSourceAutomatic
	}

	if spec.Install.Wipe == nil {
		spec.Install.Wipe = new(bool)
	}

	return spec
}
