// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
)

// TalosConfig looks at a TalosConfig.
func TalosConfig(object *bootstrapv1.TalosConfig) Report {
	report := &Report{}

	// Whether the cluster exists does not matter: it may come later, and would find a machine's config in the place of its secrets.
	if cluster, reserved := secrets.ReservedFor(object.Name); reserved {
		report.fail(field.NewPath("metadata", "name"), fmt.Sprintf(
			"the machine's Secret has the TalosConfig's name, and a Cluster %s would take %s for one of its own Secrets: give it another name",
			cluster, object.Name))
	}

	report.configSpec(field.NewPath("spec"), &object.Spec)

	return report.done()
}

// TalosConfigTemplate looks at a TalosConfigTemplate.
func TalosConfigTemplate(object *bootstrapv1.TalosConfigTemplate) Report {
	report := &Report{}
	template := field.NewPath("spec", "template")

	report.addErrors(object.Spec.Template.ObjectMeta.Validate(template.Child("metadata")))
	report.configSpec(template.Child("spec"), &object.Spec.Template.Spec)

	return report.done()
}

func (r *Report) configSpec(path *field.Path, spec *bootstrapv1.TalosConfigSpec) {
	contract := r.contract(path.Child("configContract"), spec.ConfigContract)

	install := path.Child("install")
	r.addConfigErrors(machineconfig.CheckInstall(machineconfig.Source{Path: install.String()}, spec.Install, contract))

	hasDisk := spec.Install.Disk != "" || spec.Install.DiskSelector != ""
	if hasDisk && spec.Platform != "" && spec.Platform != bootstrapv1.PlatformMetal {
		r.warn(path.Child("platform"), fmt.Sprintf(
			"is %s, where Talos is not installed, and install says where to install it: remove one of them", spec.Platform))
	}

	for _, ref := range spec.PatchRefs {
		r.objectName(path.Child("patchRefs").Key(ref.Name).Child("name"), "TalosConfigPatch", ref.Name)
	}
}

// contract returns the zero value when none is said, or one that is wrong.
func (r *Report) contract(path *field.Path, text string) version.Contract {
	if text == "" {
		return version.Contract{}
	}

	contract, err := version.ParseContract(text)
	if err != nil {
		r.fail(path, err.Error())
	}

	return contract
}

// talos returns the zero value when none is said, or one that is wrong.
func (r *Report) talos(path *field.Path, text string) version.Talos {
	if text == "" {
		return version.Talos{}
	}

	talos, err := version.ParseTalos(text)
	if err != nil {
		r.fail(path, err.Error())
	}

	return talos
}
