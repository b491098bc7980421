// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/cli/inventory"
	"github.com/maesh-dev/ichor/internal/cli/manifest"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/suggest"
	"github.com/maesh-dev/ichor/internal/targeting"
	"github.com/maesh-dev/ichor/internal/validation"
)

// checkObjects finds what no schema can say and the object alone shows: what the webhooks refuse and warn of. What is wrong inside the
// documents of patches comes with the renders, which name the machines too.
func (fs *findings) checkObjects() {
	for _, config := range fs.set.TalosClusterConfigs {
		fs.addReport(machineconfig.KindTalosClusterConfig, config, validation.TalosClusterConfig(config))
	}

	for _, patch := range fs.set.TalosConfigPatches {
		fs.addReport(machineconfig.KindTalosConfigPatch, patch, validation.TalosConfigPatchTargets(patch))
	}

	for _, storage := range fs.set.TalosStorages {
		fs.addReport(machineconfig.KindTalosStorage, storage, validation.TalosStorage(storage))
	}

	for _, config := range fs.set.TalosConfigs {
		fs.addReport(machineconfig.KindTalosConfig, config, validation.TalosConfig(config))
	}

	for _, controlPlane := range fs.set.TalosControlPlanes {
		fs.addReport(inventory.KindTalosControlPlane, controlPlane, validation.TalosControlPlane(controlPlane))
	}

	for _, template := range fs.set.TalosControlPlaneTemplates {
		fs.addReport("TalosControlPlaneTemplate", template, validation.TalosControlPlaneTemplate(template))
	}

	for _, template := range fs.set.TalosConfigTemplates {
		fs.addReport(inventory.KindTalosConfigTemplate, template, validation.TalosConfigTemplate(template))
	}
}

// addReport takes over what was found of one object, but for the warnings that each of its renders gives.
func (fs *findings) addReport(kind string, object metav1.Object, report validation.Report) {
	ref := manifest.Ref{Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName()}

	for _, fault := range report.Faults {
		fs.add(Finding{Severity: SeverityError, Object: &ref, Path: fault.Field, Document: fault.Document, Field: fault.Pointer, Message: fault.Message}, "")
	}

	for _, warning := range report.Warnings {
		fs.warn(ref, warning.Field, "", "%s", warning.Message)
	}
}

// checkUse warns of objects that concern no machine among the files. Without a Cluster among them nothing can be said.
func (fs *findings) checkUse(subjects []*inventory.Subject) {
	if len(fs.set.Clusters) == 0 {
		return
	}

	for _, config := range fs.set.TalosClusterConfigs {
		if !fs.targetsCluster(config.Spec.ClusterTargeting, config.Namespace) {
			fs.warn(manifest.Ref{Kind: machineconfig.KindTalosClusterConfig, Namespace: config.Namespace, Name: config.Name}, "spec", "",
				"targets no Cluster among the files%s", fs.meant(config.Spec.ClusterTargeting, config.Namespace))
		}
	}

	for _, controlPlane := range fs.set.TalosControlPlanes {
		if inventory.ClusterOf(fs.set, controlPlane) == nil {
			fs.warn(manifest.Ref{Kind: inventory.KindTalosControlPlane, Namespace: controlPlane.Namespace, Name: controlPlane.Name}, "", "",
				"no Cluster among the files has it in spec.controlPlaneRef")
		}
	}

	for _, storage := range fs.set.TalosStorages {
		if !selects(subjects, storage.Namespace, storage.Spec.ClusterTargeting, storage.Spec.MachineTargeting, "") {
			fs.warn(manifest.Ref{Kind: machineconfig.KindTalosStorage, Namespace: storage.Namespace, Name: storage.Name}, "spec", "",
				"selects no machine among the files%s", fs.meant(storage.Spec.ClusterTargeting, storage.Namespace))
		}
	}

	for _, patch := range fs.set.TalosConfigPatches {
		fs.checkPatchUse(subjects, patch)
	}

	for _, config := range fs.set.TalosConfigs {
		if !slices.ContainsFunc(subjects, func(s *inventory.Subject) bool { return s.TalosConfig == config }) {
			fs.warn(manifest.Ref{Kind: machineconfig.KindTalosConfig, Namespace: config.Namespace, Name: config.Name}, "", "",
				"no Machine among the files refers to it")
		}
	}

	for _, template := range fs.set.TalosConfigTemplates {
		if !slices.ContainsFunc(subjects, func(s *inventory.Subject) bool {
			return s.Template == template.Name && s.Ref.Namespace == template.Namespace
		}) {
			fs.warn(manifest.Ref{Kind: inventory.KindTalosConfigTemplate, Namespace: template.Namespace, Name: template.Name}, "", "",
				"no MachineDeployment or MachineSet among the files refers to it")
		}
	}
}

func (fs *findings) checkPatchUse(subjects []*inventory.Subject, patch *bootstrapv1.TalosConfigPatch) {
	ref := manifest.Ref{Kind: machineconfig.KindTalosConfigPatch, Namespace: patch.Namespace, Name: patch.Name}

	if slices.ContainsFunc(subjects, func(s *inventory.Subject) bool { return refersTo(s, patch) }) {
		return
	}

	if patch.Spec.ClusterName == "" && patch.Spec.ClusterSelector == nil {
		fs.warn(ref, "spec", "", "has neither clusterName nor clusterSelector, and no TalosConfig among the files has it in spec.patchRefs: it applies to no machine")

		return
	}

	if !selects(subjects, patch.Namespace, patch.Spec.ClusterTargeting, patch.Spec.MachineTargeting, patch.Spec.Role) {
		fs.warn(ref, "spec", "", "selects no machine among the files%s", fs.meant(patch.Spec.ClusterTargeting, patch.Namespace))
	}
}

func refersTo(subject *inventory.Subject, patch *bootstrapv1.TalosConfigPatch) bool {
	return subject.Ref.Namespace == patch.Namespace &&
		slices.ContainsFunc(subject.TalosConfig.Spec.PatchRefs, func(ref bootstrapv1.PatchReference) bool { return ref.Name == patch.Name })
}

func (fs *findings) targetsCluster(target bootstrapv1.ClusterTargeting, namespace string) bool {
	for _, cluster := range fs.set.Clusters {
		if ok, err := targeting.Cluster(target, namespace, cluster); ok && err == nil {
			return true
		}
	}

	return false
}

// meant says that the Cluster of a clusterName is not among the files, and which one may be meant. It is empty if the Cluster is.
func (fs *findings) meant(target bootstrapv1.ClusterTargeting, namespace string) string {
	if target.ClusterName == "" || fs.targetsCluster(target, namespace) {
		return ""
	}

	var names []string

	for _, cluster := range fs.set.Clusters {
		if cluster.Namespace == namespace {
			names = append(names, cluster.Name)
		}
	}

	message := fmt.Sprintf(": there is no Cluster %s/%s", namespace, target.ClusterName)

	if near := cmp.Or(suggest.Nearest(target.ClusterName, names), suggest.Longer(target.ClusterName, names)); near != "" {
		message += fmt.Sprintf("; did you mean clusterName: %s?", near)
	}

	return message
}

// selects tells whether an object applies to one of the machines. Broken selectors are errors already.
func selects(subjects []*inventory.Subject, namespace string, clusters bootstrapv1.ClusterTargeting, machines bootstrapv1.MachineTargeting, role bootstrapv1.MachineRole) bool {
	for _, subject := range subjects {
		inCluster, err := targeting.Cluster(clusters, namespace, subject.Cluster)
		if err != nil || !inCluster || role != "" && role != subject.Machine.Role() {
			continue
		}

		if ok, err := targeting.Machine(machines, subject.Machine.Labels); ok && err == nil {
			return true
		}
	}

	return false
}

// sort brings the findings into the order of the input: by file as it was read, document and line. What has no place comes last.
func (fs *findings) sort() {
	rank := map[string]int{}
	for i, file := range fs.set.FileNames() {
		rank[file] = i
	}

	slices.SortStableFunc(fs.all, func(a, b *Finding) int {
		switch {
		case a.Location == nil && b.Location == nil:
			return cmp.Compare(a.Message, b.Message)
		case a.Location == nil:
			return 1
		case b.Location == nil:
			return -1
		}

		return cmp.Or(
			cmp.Compare(rank[a.Location.File], rank[b.Location.File]),
			cmp.Compare(a.Location.Document, b.Location.Document),
			cmp.Compare(a.Location.Line, b.Location.Line),
			cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)),
		)
	})
}
