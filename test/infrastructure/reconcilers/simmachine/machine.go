// SPDX-License-Identifier: Apache-2.0

package simmachine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	"github.com/maesh-dev/ichor/test/infrastructure/machines"
	"github.com/maesh-dev/ichor/test/infrastructure/reconcilers/simcluster"
	"github.com/maesh-dev/ichor/test/talossim"
)

// dataKey is where bootstrap data is in its Secret.
const dataKey = "value"

// idOf is the provider ID that the machine has, or gets.
func idOf(object *infrav1.SimMachine) string {
	return cmp.Or(object.Spec.ProviderID, fmt.Sprintf("sim:///%s/%s/%s", object.Namespace, object.Name, object.UID))
}

// reconcile brings the machine to what the spec wants, one step after the other.
func (r *Reconciler) reconcile(ctx context.Context, cluster *clusterv1.Cluster, owner *clusterv1.Machine, object *infrav1.SimMachine) (ctrl.Result, error) {
	machine := r.Farm.Machine(idOf(object))

	// The provider ID is written when the machine has booted. A machine is never made a second time: it would be another one,
	// without what was on its disk, and whoever counts on its etcd member or its volumes must be told.
	if machine == nil && object.Spec.ProviderID != "" {
		setReady(object, metav1.ConditionFalse, infrav1.MachineLostReason,
			"the provider has been restarted: the machine and all that it held are gone; delete the Machine, to have another one")

		return ctrl.Result{}, nil
	}

	if machine == nil || !machine.Provisioned() {
		config, err := r.bootstrapData(ctx, cluster, owner, object)
		if err != nil || config == nil {
			return ctrl.Result{}, err
		}

		if machine == nil {
			of, err := r.clusterOf(ctx, cluster)
			if err != nil {
				return ctrl.Result{}, err
			}

			if machine, err = r.Farm.Make(of, nodeOptions(object)); err != nil {
				setReady(object, metav1.ConditionFalse, infrav1.InvalidSpecReason, err.Error())

				return ctrl.Result{RequeueAfter: look}, nil
			}
		}

		machine.SetFaults(faults(object.Spec.Faults))

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

// clusterOf is how the farm knows the cluster.
func (r *Reconciler) clusterOf(ctx context.Context, cluster *clusterv1.Cluster) (machines.Cluster, error) {
	infrastructure := &infrav1.SimCluster{}

	err := r.Client.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Spec.InfrastructureRef.Name}, infrastructure)
	if isNotFound(err) {
		return simcluster.ClusterOf(cluster, nil), nil // the cluster's infrastructure is of another provider
	}

	if err != nil {
		return machines.Cluster{}, fmt.Errorf("infrastructure of the Cluster: %w", err)
	}

	return simcluster.ClusterOf(cluster, infrastructure), nil
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

// bootstrapData is what the machine boots from. If it is not there, the SimMachine says why.
func (r *Reconciler) bootstrapData(ctx context.Context, cluster *clusterv1.Cluster, owner *clusterv1.Machine, object *infrav1.SimMachine) ([]byte, error) {
	if !ptr.Deref(cluster.Status.Initialization.InfrastructureProvisioned, false) {
		setReady(object, metav1.ConditionFalse, infrav1.WaitingForClusterInfrastructureReason, "")

		return nil, nil
	}

	name := owner.Spec.Bootstrap.DataSecretName
	if name == nil {
		setReady(object, metav1.ConditionFalse, infrav1.WaitingForBootstrapDataReason, "")

		return nil, nil
	}

	secret := &corev1.Secret{}
	if err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: owner.Namespace, Name: *name}, secret); err != nil {
		setReady(object, metav1.ConditionFalse, infrav1.BootstrapDataUnusableReason, fmt.Sprintf("Secret %s cannot be read", *name))

		return nil, fmt.Errorf("bootstrap data: %w", err)
	}

	config := secret.Data[dataKey]
	if len(config) == 0 {
		setReady(object, metav1.ConditionFalse, infrav1.BootstrapDataUnusableReason, fmt.Sprintf("Secret %s has nothing under the key %q", *name, dataKey))

		return nil, fmt.Errorf("bootstrap data: Secret %s has nothing under the key %q", *name, dataKey)
	}

	return config, nil
}

// observe brings faults and power of a machine to what the spec wants, and tells what the machine does.
func (r *Reconciler) observe(ctx context.Context, owner *clusterv1.Machine, object *infrav1.SimMachine, machine *machines.Machine) {
	node := machine.Node
	machine.SetFaults(faults(object.Spec.Faults))

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
	object.Status.Addresses = []clusterv1.MachineAddress{
		{Type: clusterv1.MachineInternalIP, Address: machine.Node.Address()},
		{Type: clusterv1.MachineHostName, Address: machine.Node.Name()},
	}
}

func nodeOptions(object *infrav1.SimMachine) talossim.NodeOptions {
	return talossim.NodeOptions{
		Name: object.Name, ProviderID: idOf(object), Image: object.Spec.Image,
		Blank: object.Spec.Disk == infrav1.DiskBlank, Metal: object.Spec.Platform == infrav1.PlatformMetal,
	}
}

func faults(f infrav1.Faults) talossim.Faults {
	return talossim.Faults{
		Unreachable: f.Unreachable, BlackHole: f.BlackHole, Delay: time.Duration(f.DelayMilliseconds) * time.Millisecond,
		WrongCA: f.WrongCA, ClockSkew: time.Duration(f.ClockSkewSeconds) * time.Second, Hostname: f.Hostname, TimeUnsynced: f.TimeUnsynced,
		LeaveFails: f.LeaveFails, EtcdNeverStarts: f.EtcdNeverStarts, EtcdNeverCatchesUp: f.EtcdNeverCatchesUp,
		PullFails: f.PullFails, InstallExitCode: f.InstallExitCode, BootFails: f.BootFails, NeverReady: f.NeverReady,
	}
}
