// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/rollout"
	"github.com/maesh-dev/ichor/internal/version"
)

// changeOfControlPlane allows every change but one of the version that Kubernetes does not survive. All else is a matter of the rollout:
// what a machine cannot get in place is told there.
//
// The way back is open as long as a machine of the old minor is there: API servers of both have to understand what either stores meanwhile, and
// an upgrade whose first machine never comes up must not have to go on. It is open, too, before any API server has answered.
func changeOfControlPlane(_ admission.Request, before, after *controlplanev1.TalosControlPlane) (field.ErrorList, []string) {
	wanted, err := version.ParseKubernetes(after.Spec.Version)
	if err != nil || before.Spec.Version == after.Spec.Version {
		return nil, nil // a version that is none is refused for what it is
	}

	oldest, newest := running(before)
	if oldest.IsZero() {
		return nil, nil
	}

	path := field.NewPath("spec", "version")

	switch {
	case wanted.Minor() < oldest.Minor() && served(before):
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("all machines run Kubernetes %s or newer, and a control plane does not go back to an older minor: "+
			"what the newer one has stored may mean nothing to the older one; set %[1]s or newer", oldest))}, nil
	case wanted.Minor() > oldest.Minor()+1:
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("machines run Kubernetes %s, and a control plane goes from one minor to the next: "+
			"set a v1.%d version first, and wait until all machines run it", oldest, oldest.Minor()+1))}, nil
	case wanted.Compare(newest) < 0:
		return nil, []string{fmt.Sprintf("spec.version: machines run Kubernetes %s already, or are about to: this goes back to %s", newest, wanted)}
	}

	return nil, nil
}

// running are the oldest and the newest Kubernetes that machines run or are about to. Both are zero before there are machines. A move drops
// the status, and keeps the record of the bootstrap; then the version that was wanted so far counts.
func running(object *controlplanev1.TalosControlPlane) (oldest, newest version.Kubernetes) {
	for _, each := range object.Status.Versions {
		found, err := version.ParseKubernetes(each.Version)
		if err != nil {
			continue // a node may report what Ichor would not have made
		}

		if oldest.IsZero() || found.Compare(oldest) < 0 {
			oldest = found
		}

		if found.Compare(newest) > 0 {
			newest = found
		}
	}

	if !oldest.IsZero() || !exists(object) {
		return oldest, newest
	}

	wanted, err := version.ParseKubernetes(object.Spec.Version)
	if err != nil {
		return oldest, newest
	}

	return wanted, wanted
}

// served says whether an API server of the control plane has ever answered, as far as the object tells. Whoever cannot read the record must take
// it that one has.
func served(object *controlplanev1.TalosControlPlane) bool {
	value, set := object.Annotations[controlplanev1.BootstrapAnnotation]
	mark := rollout.ParseBootstrapMark(value, set)

	return mark.Record.Done || mark.Problem != "" || ptr.Deref(object.Status.Initialization.ControlPlaneInitialized, false)
}

// exists says whether there is a control plane in the world that the object stands for.
func exists(object *controlplanev1.TalosControlPlane) bool {
	_, bootstrapped := object.Annotations[controlplanev1.BootstrapAnnotation]

	return bootstrapped || ptr.Deref(object.Status.Replicas, 0) > 0 || ptr.Deref(object.Status.Initialization.ControlPlaneInitialized, false)
}
