// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/validating"
	"github.com/maesh-dev/ichor/internal/validation"
)

// With failurePolicy Fail nothing comes in unchecked while no manager runs. The timeout is many times what the largest object takes.
//
// +kubebuilder:webhook:verbs=create;update,path=/validate-bootstrap-ichor-maesh-dev-v1alpha1-talosconfig,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=bootstrap.ichor.maesh.dev,resources=talosconfigs,versions=v1alpha1,name=validation.talosconfig.bootstrap.ichor.maesh.dev,sideEffects=None,admissionReviewVersions=v1,timeoutSeconds=10
// +kubebuilder:webhook:verbs=create;update,path=/validate-bootstrap-ichor-maesh-dev-v1alpha1-talosconfigtemplate,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=bootstrap.ichor.maesh.dev,resources=talosconfigtemplates,versions=v1alpha1,name=validation.talosconfigtemplate.bootstrap.ichor.maesh.dev,sideEffects=None,admissionReviewVersions=v1,timeoutSeconds=10
// +kubebuilder:webhook:verbs=create;update,path=/validate-bootstrap-ichor-maesh-dev-v1alpha1-talosclusterconfig,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=bootstrap.ichor.maesh.dev,resources=talosclusterconfigs,versions=v1alpha1,name=validation.talosclusterconfig.bootstrap.ichor.maesh.dev,sideEffects=None,admissionReviewVersions=v1,timeoutSeconds=10
// +kubebuilder:webhook:verbs=create;update,path=/validate-bootstrap-ichor-maesh-dev-v1alpha1-talosconfigpatch,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=bootstrap.ichor.maesh.dev,resources=talosconfigpatches,versions=v1alpha1,name=validation.talosconfigpatch.bootstrap.ichor.maesh.dev,sideEffects=None,admissionReviewVersions=v1,timeoutSeconds=10
// +kubebuilder:webhook:verbs=create;update,path=/validate-bootstrap-ichor-maesh-dev-v1alpha1-talosstorage,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=bootstrap.ichor.maesh.dev,resources=talosstorages,versions=v1alpha1,name=validation.talosstorage.bootstrap.ichor.maesh.dev,sideEffects=None,admissionReviewVersions=v1,timeoutSeconds=10

// SetupWithManager registers the webhooks of all kinds with the manager's webhook server.
func SetupWithManager(mgr ctrl.Manager) error {
	room, beside := validating.NewRoom(), around{mgr.GetClient()}

	return errors.Join(
		validating.Register(mgr, &bootstrapv1.TalosConfig{}, validating.Validator[*bootstrapv1.TalosConfig]{
			Room: room, Look: validation.TalosConfig, Spec: func(o *bootstrapv1.TalosConfig) any { return o.Spec }, Change: changeOfTalosConfig,
		}),
		validating.Register(mgr, &bootstrapv1.TalosConfigTemplate{}, validating.Validator[*bootstrapv1.TalosConfigTemplate]{
			Room: room, Look: validation.TalosConfigTemplate, Spec: func(o *bootstrapv1.TalosConfigTemplate) any { return o.Spec },
			Change: validating.ChangeOfTemplate[*bootstrapv1.TalosConfigTemplate],
		}),
		validating.Register(mgr, &bootstrapv1.TalosClusterConfig{}, validating.Validator[*bootstrapv1.TalosClusterConfig]{
			Room: room, Look: validation.TalosClusterConfig, Spec: func(o *bootstrapv1.TalosClusterConfig) any { return o.Spec },
			Change: changeOfClusterConfig, Around: beside.clusterConfig,
		}),
		validating.Register(mgr, &bootstrapv1.TalosConfigPatch{}, validating.Validator[*bootstrapv1.TalosConfigPatch]{
			Room: room, Look: validation.TalosConfigPatch, Spec: func(o *bootstrapv1.TalosConfigPatch) any { return o.Spec },
		}),
		validating.Register(mgr, &bootstrapv1.TalosStorage{}, validating.Validator[*bootstrapv1.TalosStorage]{
			Room: room, Look: validation.TalosStorage, Spec: func(o *bootstrapv1.TalosStorage) any { return o.Spec }, Change: changeOfStorage,
		}),
	)
}
