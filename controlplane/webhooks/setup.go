// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/validating"
	"github.com/maesh-dev/ichor/internal/validation"
)

// With failurePolicy Fail nothing comes in unchecked while no manager runs. The timeout is many times what the largest object takes.
//
// +kubebuilder:webhook:verbs=create;update,path=/validate-controlplane-ichor-maesh-dev-v1alpha1-taloscontrolplane,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=controlplane.ichor.maesh.dev,resources=taloscontrolplanes,versions=v1alpha1,name=validation.taloscontrolplane.controlplane.ichor.maesh.dev,sideEffects=None,admissionReviewVersions=v1,timeoutSeconds=10
// +kubebuilder:webhook:verbs=create;update,path=/validate-controlplane-ichor-maesh-dev-v1alpha1-taloscontrolplanetemplate,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=controlplane.ichor.maesh.dev,resources=taloscontrolplanetemplates,versions=v1alpha1,name=validation.taloscontrolplanetemplate.controlplane.ichor.maesh.dev,sideEffects=None,admissionReviewVersions=v1,timeoutSeconds=10

// SetupWithManager registers the webhooks of all kinds with the manager's webhook server.
func SetupWithManager(mgr ctrl.Manager) error {
	room, beside := validating.NewRoom(), around{cached: mgr.GetClient(), live: mgr.GetAPIReader()}

	return errors.Join(
		validating.Register(mgr, &controlplanev1.TalosControlPlane{}, validating.Validator[*controlplanev1.TalosControlPlane]{
			Room: room, Look: validation.TalosControlPlane, Spec: func(o *controlplanev1.TalosControlPlane) any { return o.Spec }, Change: changeOfControlPlane,
			Around: beside.controlPlane,
		}),
		validating.Register(mgr, &controlplanev1.TalosControlPlaneTemplate{}, validating.Validator[*controlplanev1.TalosControlPlaneTemplate]{
			Room: room, Look: validation.TalosControlPlaneTemplate, Spec: func(o *controlplanev1.TalosControlPlaneTemplate) any { return o.Spec },
			Change: validating.ChangeOfTemplate[*controlplanev1.TalosControlPlaneTemplate],
		}),
	)
}
