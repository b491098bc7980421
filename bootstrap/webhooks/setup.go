// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
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
	room := newRoom()

	for _, register := range []func() error{
		func() error {
			return register(mgr, &bootstrapv1.TalosConfig{}, &validator[*bootstrapv1.TalosConfig]{
				room: room, look: validation.TalosConfig, spec: func(o *bootstrapv1.TalosConfig) any { return o.Spec }, change: changeOfTalosConfig,
			})
		},
		func() error {
			return register(mgr, &bootstrapv1.TalosConfigTemplate{}, &validator[*bootstrapv1.TalosConfigTemplate]{
				room: room, look: validation.TalosConfigTemplate, spec: func(o *bootstrapv1.TalosConfigTemplate) any { return o.Spec }, change: changeOfTemplate,
			})
		},
		func() error {
			return register(mgr, &bootstrapv1.TalosClusterConfig{}, &validator[*bootstrapv1.TalosClusterConfig]{
				room: room, look: validation.TalosClusterConfig, spec: func(o *bootstrapv1.TalosClusterConfig) any { return o.Spec },
			})
		},
		func() error {
			return register(mgr, &bootstrapv1.TalosConfigPatch{}, &validator[*bootstrapv1.TalosConfigPatch]{
				room: room, look: validation.TalosConfigPatch, spec: func(o *bootstrapv1.TalosConfigPatch) any { return o.Spec },
			})
		},
		func() error {
			return register(mgr, &bootstrapv1.TalosStorage{}, &validator[*bootstrapv1.TalosStorage]{
				room: room, look: validation.TalosStorage, spec: func(o *bootstrapv1.TalosStorage) any { return o.Spec }, change: changeOfStorage,
			})
		},
	} {
		if err := register(); err != nil {
			return err
		}
	}

	return nil
}

func register[T client.Object](mgr ctrl.Manager, object T, validator *validator[T]) error {
	if err := ctrl.NewWebhookManagedBy(mgr, object).WithValidator(validator).Complete(); err != nil {
		return fmt.Errorf("webhook of %T: %w", object, err)
	}

	return nil
}
