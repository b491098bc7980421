// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/validation"
)

// changeOfTalosConfig allows what can take effect on a machine that runs, as Cluster API's contract for in-place updates wants, and refuses
// what its config could only say and never bring about. Before a machine's config is rendered, everything may be changed; so may the
// config of a MachinePool, which gets new machines.
func changeOfTalosConfig(_ admission.Request, before, after *bootstrapv1.TalosConfig) (field.ErrorList, []string) {
	if !isRendered(before) || isOfPool(after) {
		return nil, nil
	}

	var errs field.ErrorList

	path := field.NewPath("spec")
	refuse := func(at *field.Path, same bool, why string) {
		if !same {
			errs = append(errs, field.Forbidden(at, why))
		}
	}

	was, is := before.Spec, after.Spec
	install := path.Child("install")

	const installed = "Talos is on the machine's disk already, and is not moved: replace the machine"

	refuse(install.Child("disk"), was.Install.Disk == is.Install.Disk, installed)
	refuse(install.Child("diskSelector"), was.Install.DiskSelector == is.Install.DiskSelector, installed)
	refuse(install.Child("wipe"), ptr.Deref(was.Install.Wipe, false) == ptr.Deref(is.Install.Wipe, false), installed)
	refuse(path.Child("hostname", "source"), hostnameSource(was) == hostnameSource(is),
		"the machine's Node has its name already: replace the machine")

	// Nothing is pinned where Ichor found bootstrap data that it had not made.
	if pinned := before.Status.ConfigContract; pinned != "" {
		contract := is.ConfigContract
		refuse(path.Child("configContract"), contract == was.ConfigContract || contract == pinned || contract == "", fmt.Sprintf(
			"the machine's config was rendered in format %s and keeps it: set that, or replace the machine", pinned))
	}

	return errs, nil
}

func isRendered(config *bootstrapv1.TalosConfig) bool {
	return config.Status.ConfigContract != "" || config.Status.DataSecretName != ""
}

func isOfPool(config *bootstrapv1.TalosConfig) bool {
	return util.HasOwner(config.OwnerReferences, clusterv1.GroupVersion.String(), []string{machineconfig.KindMachinePool})
}

func hostnameSource(spec bootstrapv1.TalosConfigSpec) bootstrapv1.HostnameSource {
	return cmp.Or(spec.Hostname.Source, bootstrapv1.HostnameSourceAutomatic)
}

// changeOfStorage allows every change, and says what it does not do.
func changeOfStorage(_ admission.Request, before, after *bootstrapv1.TalosStorage) (field.ErrorList, []string) {
	if before.Spec.Preset == after.Spec.Preset && equality.Semantic.DeepEqual(before.Spec.Volume, after.Spec.Volume) {
		return nil, nil
	}

	return nil, []string{"spec.volume: machines that have the volume keep it as it is: Talos does not change the layout of a disk. New machines get the new one"}
}

// changeOfClusterConfig allows every change, and says what a move would fail at.
func changeOfClusterConfig(_ admission.Request, _, after *bootstrapv1.TalosClusterConfig) (field.ErrorList, []string) {
	if fault := validation.NotCreatable(after); fault != "" {
		return nil, []string{fault}
	}

	return nil, nil
}
