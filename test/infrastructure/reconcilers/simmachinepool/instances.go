// SPDX-License-Identifier: Apache-2.0

package simmachinepool

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	"github.com/maesh-dev/ichor/test/infrastructure/machines"
	"github.com/maesh-dev/ichor/test/infrastructure/reconcilers/bootstrapdata"
	"github.com/maesh-dev/ichor/test/infrastructure/reconcilers/nodespec"
	"github.com/maesh-dev/ichor/test/infrastructure/reconcilers/simcluster"
	"github.com/maesh-dev/ichor/test/talossim"
)

// instance is a machine of a pool.
type instance struct {
	id      string
	machine *machines.Machine
}

// below is how the provider IDs of all machines of a pool begin.
func below(object *infrav1.SimMachinePool) string {
	return fmt.Sprintf("sim:///%s/%s/%s/", object.Namespace, object.Name, object.UID)
}

// instances are the machines that there are, by name. What the object says of them is an account: a machine that the platform has and
// that nobody has written down yet is one all the same, and one that it has lost is none.
func (r *Reconciler) instances(object *infrav1.SimMachinePool) []instance {
	found := r.Farm.Below(below(object))

	var all []instance
	for _, id := range slices.Sorted(maps.Keys(found)) {
		all = append(all, instance{id: id, machine: found[id]})
	}

	return all
}

// reconcile makes the machines that are missing, or takes away those that are too many, and tells what there is.
func (r *Reconciler) reconcile(ctx context.Context, cluster *clusterv1.Cluster, pool *clusterv1.MachinePool, object *infrav1.SimMachinePool) (ctrl.Result, error) {
	config, missing, err := bootstrapdata.Read(ctx, r.APIReader, cluster, pool.Namespace, pool.Spec.Template.Spec.Bootstrap)
	if config == nil {
		setReady(object, metav1.ConditionFalse, missing.Reason, missing.Message)

		return ctrl.Result{}, err
	}

	all := r.instances(object)
	wanted := int(ptr.Deref(pool.Spec.Replicas, 1))

	for _, extra := range all[min(wanted, len(all)):] {
		if err := r.Farm.Destroy(extra.id); err != nil {
			return ctrl.Result{}, err
		}
	}

	all = all[:min(wanted, len(all))]

	if len(all) < wanted {
		of, err := simcluster.Find(ctx, r.Client, cluster)
		if err != nil {
			return ctrl.Result{}, err
		}

		for len(all) < wanted {
			made, err := r.make(of, object)
			if err != nil {
				setReady(object, metav1.ConditionFalse, infrav1.InvalidSpecReason, err.Error())

				return ctrl.Result{RequeueAfter: look}, nil
			}

			all = append(all, made)
		}
	}

	slices.SortFunc(all, func(a, b instance) int { return strings.Compare(a.id, b.id) })
	r.run(ctx, object, all, config)

	return ctrl.Result{RequeueAfter: look}, nil
}

// make makes another machine, and leaves it off.
func (r *Reconciler) make(of machines.Cluster, object *infrav1.SimMachinePool) (instance, error) {
	name := object.Name + "-" + rand.String(5)
	id := below(object) + name

	machine, err := r.Farm.Make(of, nodespec.Options(name, id, object.Spec.Machine))

	return instance{id: id, machine: machine}, err
}

// run boots the machines that have not run yet, and tells how all are.
func (r *Reconciler) run(ctx context.Context, object *infrav1.SimMachinePool, all []instance, config []byte) {
	var ill []string

	object.Spec.ProviderIDList, object.Status.Instances = nil, nil

	for _, each := range all {
		each.machine.SetFaults(nodespec.Faults(object.Spec.Machine.Faults))

		err := each.machine.Provision(ctx, config, object.Spec.Machine.FirstBoot == infrav1.FirstBootMaintenance)
		if err != nil || each.machine.Node.State() == talossim.NodeWaiting || !each.machine.Node.On() || each.machine.Node.Failure() != nil {
			// What a node says of its config may quote it.
			ill = append(ill, each.machine.Node.Name())
		}

		object.Spec.ProviderIDList = append(object.Spec.ProviderIDList, each.id)
		object.Status.Instances = append(object.Status.Instances, infrav1.SimMachinePoolInstance{
			Name:      each.machine.Node.Name(),
			Addresses: []clusterv1.MachineAddress{{Type: clusterv1.MachineInternalIP, Address: each.machine.Node.Address()}},
		})
	}

	object.Status.Replicas = new(int32(len(all)))
	object.Status.Ready = new(true)
	object.Status.Initialization.Provisioned = new(true)

	if len(ill) > 0 {
		setReady(object, metav1.ConditionFalse, infrav1.MachinesNotRunningReason, "machines that do not run: "+strings.Join(ill, ", "))

		return
	}

	setReady(object, metav1.ConditionTrue, infrav1.RunningReason, "")
}
