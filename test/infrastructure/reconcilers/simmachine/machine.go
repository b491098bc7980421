// SPDX-License-Identifier: Apache-2.0

package simmachine

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	"github.com/maesh-dev/ichor/test/infrastructure/machines"
	"github.com/maesh-dev/ichor/test/infrastructure/reconcilers/bootstrapdata"
	"github.com/maesh-dev/ichor/test/infrastructure/reconcilers/nodespec"
	"github.com/maesh-dev/ichor/test/infrastructure/reconcilers/simcluster"
)

// idOf is the provider ID that the machine has, or gets.
func idOf(object *infrav1.SimMachine) string {
	return cmp.Or(object.Spec.ProviderID, fmt.Sprintf("sim:///%s/%s/%s", object.Namespace, object.Name, object.UID))
}

// reconcile brings the machine to what the spec wants, one step after the other.
func (r *Reconciler) reconcile(ctx context.Context, cluster *clusterv1.Cluster, owner *clusterv1.Machine, object *infrav1.SimMachine) (ctrl.Result, error) {
	machine := r.Farm.Machine(idOf(object))

	if machine == nil && object.Spec.ProviderID != "" {
		of, err := simcluster.Find(ctx, r.Client, cluster)
		if err != nil {
			return ctrl.Result{}, err
		}

		// One that does not boot is there, and says so.
		if machine, err = r.Farm.Restore(ctx, of, object.Name, idOf(object)); machine == nil && err != nil {
			setReady(object, metav1.ConditionFalse, infrav1.BootFailedReason, err.Error())

			return ctrl.Result{RequeueAfter: look}, nil
		}
	}

	// The provider ID is written when the machine has booted. A machine is never made a second time: it would be another one,
	// without what was on its disk, and whoever counts on its etcd member or its volumes must be told.
	if machine == nil && object.Spec.ProviderID != "" {
		setReady(object, metav1.ConditionFalse, infrav1.MachineLostReason,
			"the machine and all that it held are gone, as when a provider that keeps its machines in memory (no --data-dir) has been restarted; "+
				"delete the Machine, to have another one")

		return ctrl.Result{}, nil
	}

	if machine == nil || !machine.Provisioned() {
		config, missing, err := bootstrapdata.Read(ctx, r.APIReader, cluster, owner.Namespace, owner.Spec.Bootstrap)
		if config == nil {
			setReady(object, metav1.ConditionFalse, missing.Reason, missing.Message)

			return ctrl.Result{}, err
		}

		if machine == nil {
			of, err := simcluster.Find(ctx, r.Client, cluster)
			if err != nil {
				return ctrl.Result{}, err
			}

			if machine, err = r.Farm.Make(of, nodespec.Options(object.Name, idOf(object), object.Spec)); err != nil {
				setReady(object, metav1.ConditionFalse, infrav1.InvalidSpecReason, err.Error())

				return ctrl.Result{RequeueAfter: look}, nil
			}
		}

		machine.SetFaults(nodespec.Faults(object.Spec.Faults))

		if object.Spec.Power == infrav1.PowerOff {
			setReady(object, metav1.ConditionFalse, infrav1.PoweredOffReason, "spec.power is Off: the machine has never been on")

			return ctrl.Result{}, nil
		}

		if err := machine.Provision(ctx, config, object.Spec.FirstBoot == infrav1.FirstBootMaintenance); err != nil {
			return r.notProvisioned(object, machine, owner, err)
		}
	}

	r.observe(ctx, owner, object, machine)

	return ctrl.Result{RequeueAfter: look}, nil
}

// notProvisioned tells why a machine did not get its config. It is there all the same.
func (r *Reconciler) notProvisioned(object *infrav1.SimMachine, machine *machines.Machine, owner *clusterv1.Machine, err error) (ctrl.Result, error) {
	setProvisioned(object, owner, machine)

	switch {
	case errors.Is(err, machines.ErrRefused):
		setReady(object, metav1.ConditionFalse, infrav1.ConfigRefusedReason, refused(owner))
	case machine.Node.BootError() != nil:
		setReady(object, metav1.ConditionFalse, infrav1.BootFailedReason, err.Error())
	default:
		setReady(object, metav1.ConditionFalse, infrav1.ConfigNotAppliedReason, err.Error())
	}

	return ctrl.Result{RequeueAfter: look}, nil
}

// observe brings faults and power of a machine to what the spec wants, and tells what the machine does.
func (r *Reconciler) observe(ctx context.Context, owner *clusterv1.Machine, object *infrav1.SimMachine, machine *machines.Machine) {
	node := machine.Node
	machine.SetFaults(nodespec.Faults(object.Spec.Faults))

	switch object.Spec.Power {
	case infrav1.PowerOff:
		node.PowerOff()
	case infrav1.PowerOn:
		// A boot that fails is in BootError.
		_ = node.PowerOn(ctx)
	}

	setProvisioned(object, owner, machine)

	maintenance, refusal := node.Maintenance()

	switch {
	case !node.On():
		setReady(object, metav1.ConditionFalse, infrav1.PoweredOffReason, "")
	case node.BootError() != nil:
		setReady(object, metav1.ConditionFalse, infrav1.BootFailedReason, node.BootError().Error())
	case maintenance && refusal != nil:
		setReady(object, metav1.ConditionFalse, infrav1.ConfigRefusedReason, refused(owner))
	case node.Failure() != nil:
		setReady(object, metav1.ConditionFalse, infrav1.ComponentFailedReason, node.Failure().Error())
	default:
		setReady(object, metav1.ConditionTrue, infrav1.RunningReason, "")
	}
}

// refused does not repeat what the node says, which may quote the config.
func refused(owner *clusterv1.Machine) string {
	return fmt.Sprintf("the node stays in maintenance mode: it refuses the machine config in Secret %s", ptr.Deref(owner.Spec.Bootstrap.DataSecretName, ""))
}

// setProvisioned says that the machine is there, and where.
func setProvisioned(object *infrav1.SimMachine, owner *clusterv1.Machine, machine *machines.Machine) {
	object.Spec.ProviderID = idOf(object)
	object.Status.Initialization.Provisioned = new(true)
	object.Status.FailureDomain = owner.Spec.FailureDomain
	object.Status.Addresses = addresses(object.Spec.Faults, machine)
}

// addresses are what the platform knows of the machine's.
func addresses(faults infrav1.Faults, machine *machines.Machine) []clusterv1.MachineAddress {
	var all []clusterv1.MachineAddress

	if faults.VirtualAddress != "" {
		all = append(all, clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: faults.VirtualAddress})
	}

	if !faults.NoAddress {
		all = append(all, clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: machine.Node.Address()},
			clusterv1.MachineAddress{Type: clusterv1.MachineHostName, Address: machine.Node.Name()})
	}

	return all
}
