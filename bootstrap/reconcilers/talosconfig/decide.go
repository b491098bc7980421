// SPDX-License-Identifier: Apache-2.0

package talosconfig

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// step is the one thing that a reconcile does.
//
//sumtype:decl
type step interface{ isStep() }

type (
	// wait does nothing until something that is watched happens.
	wait struct{ reason, message string }

	// render makes the config and writes the Secret. again means that the Secret existed before.
	render struct{ again bool }

	// keep leaves the Secret, which is the TalosConfig's own, as it is.
	keep struct{ secret *corev1.Secret }

	// refresh renders a MachinePool's config again if anything that goes into it has changed, and then changes the Secret in place:
	// the pool's next instance boots of it.
	refresh struct{ secret *corev1.Secret }

	// claim makes the TalosConfig the owner of its Secret once more, or gives the Secret its label back.
	claim struct{ secret *corev1.Secret }

	// adopt takes over bootstrap data that the Machine already has, and Ichor has not written: it is never written over.
	adopt struct{ name string }

	// refuse leaves a Secret of the name alone that belongs to something else, or would.
	refuse struct{ reason, message string }

	// forgo does without a Secret: what has become of it, which the message tells, came after the machine had joined, which never reads it
	// again.
	forgo struct{ message string }
)

func (wait) isStep()    {}
func (render) isStep()  {}
func (keep) isStep()    {}
func (refresh) isStep() {}
func (claim) isStep()   {}
func (adopt) isStep()   {}
func (refuse) isStep()  {}
func (forgo) isStep()   {}

// decide says what to do next. It is a pure function, and its order is the specification: what exists is looked at before
// what is waited for, so that a machine that has its config keeps it whatever happens around it.
func decide(seen observation) step {
	config, owner := seen.config, seen.owner

	switch {
	case owner == nil:
		return wait{bootstrapv1.TalosConfigWaitingForOwnerReason, "Waiting for a Machine or MachinePool to own the TalosConfig"}

	case owner.dataSecretName != "" && owner.dataSecretName != config.Name:
		return adopt{owner.dataSecretName}

	case seen.secret != nil:
		return decideSecret(seen)

	case owner.joined:
		return forgo{fmt.Sprintf("Secret %s does not exist; %s", config.Name, joinedMessage)}
	}

	if cluster, reserved := secrets.ReservedFor(config.Name); reserved {
		return refuse{bootstrapv1.TalosConfigNameReservedReason, fmt.Sprintf(
			"Secret %s would have the name of a Secret of Cluster %s itself: replace the TalosConfig by one with another name", config.Name, cluster)}
	}

	if missing := unready(seen); missing != (wait{}) {
		return missing
	}

	return render{again: owner.dataSecretName != "" || ptr.Deref(config.Status.Initialization.DataSecretCreated, false)}
}

// unready says what a render has to wait for, with an owner there. The zero value is nothing.
func unready(seen observation) wait {
	owner, cluster := seen.owner, seen.cluster

	switch {
	case !owner.object.GetDeletionTimestamp().IsZero():
		return wait{
			bootstrapv1.TalosConfigDataSecretNotAvailableReason,
			fmt.Sprintf("%s %s is being deleted and needs no bootstrap data", owner.machine.Kind, owner.machine.Name),
		}

	case cluster == nil:
		return wait{bootstrapv1.TalosConfigWaitingForClusterReason, fmt.Sprintf("Waiting for Cluster %s to exist", owner.clusterName)}

	case !cluster.DeletionTimestamp.IsZero():
		return wait{
			bootstrapv1.TalosConfigDataSecretNotAvailableReason,
			fmt.Sprintf("Cluster %s is being deleted and gets no new machines", cluster.Name),
		}

	case !provisioned(cluster):
		return wait{
			bootstrapv1.TalosConfigWaitingForClusterInfrastructureReason,
			fmt.Sprintf("Waiting for the infrastructure of Cluster %s to be provisioned", cluster.Name),
		}

	case !cluster.Spec.ControlPlaneEndpoint.IsValid():
		return wait{
			bootstrapv1.TalosConfigWaitingForControlPlaneEndpointReason,
			fmt.Sprintf("Waiting for Cluster %s to have a control-plane endpoint (spec.controlPlaneEndpoint)", cluster.Name),
		}
	}

	return wait{}
}

// joinedMessage is why nothing is wrong with a machine whose Secret is.
const joinedMessage = "the machine has joined and does not read it again"

// decideSecret says what to do about a Secret with the TalosConfig's name.
func decideSecret(seen observation) step {
	holder := holderOf(seen.secret, seen.config, seen.owner)

	// A machine that runs must not be called unready, and be replaced, for what it does not need.
	if owner := seen.owner; owner != nil && owner.joined {
		switch {
		case holder == holderOther && owner.dataSecretName == seen.secret.Name:
			return forgo{fmt.Sprintf("Secret %s is another now, which %s; %s", seen.secret.Name, belongs(seen.secret), joinedMessage)}
		case holder != holderOther && isEmpty(seen.secret):
			return forgo{fmt.Sprintf("Secret %s has no value for the key %q any more; %s", seen.secret.Name, dataKey, joinedMessage)}
		}
	}

	switch holder {
	case holderConfig:
		if seen.secret.Labels[clusterv1.ClusterNameLabel] != seen.owner.clusterName {
			return claim{seen.secret}
		}

		// A machine boots once, or has booted, and keeps what it was given. A pool may get a new instance at any time.
		if seen.owner.machine.Kind == machineconfig.KindMachinePool && unready(seen) == (wait{}) {
			return refresh{seen.secret}
		}

		return keep{seen.secret}
	case holderLost:
		return claim{seen.secret}
	case holderUser:
		return adopt{seen.secret.Name}
	default:
		return refuse{bootstrapv1.TalosConfigDataSecretForeignReason, foreignMessage(seen.secret)}
	}
}

func foreignMessage(secret *corev1.Secret) string {
	// Nobody must be told to delete such a one, whatever is in it.
	if cluster, ok := secrets.ReservedFor(secret.Name); ok {
		return fmt.Sprintf("Secret %s exists and has the name of a Secret of Cluster %s itself: leave it, and give the TalosConfig another name",
			secret.Name, cluster)
	}

	return fmt.Sprintf("Secret %s exists and %s; it is not reused: delete or rename it", secret.Name, belongs(secret))
}

func belongs(secret *corev1.Secret) string {
	if controller := metav1.GetControllerOf(secret); controller != nil {
		return fmt.Sprintf("belongs to %s %s (UID %s)", controller.Kind, controller.Name, controller.UID)
	}

	return "has no controlling owner"
}
