// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capicontroller "sigs.k8s.io/cluster-api/util/controller"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/rollout"
)

var (
	machineGVK      = capicontroller.StructuredObject(clusterv1.GroupVersion, machineKind)
	controlPlaneGVK = capicontroller.StructuredObject(controlplanev1.GroupVersion, talosControlPlaneKind)
)

// createMachine makes infrastructure machine, TalosConfig and Machine, all of one name. What has been made is removed when a later one
// cannot be.
func (r *Reconciler) createMachine(ctx context.Context, seen *observation, action rollout.CreateMachine) error {
	name, err := r.freeName(ctx, seen)
	if err != nil {
		return err
	}

	if err := r.createNamed(ctx, seen, action, name); err != nil {
		// The next attempt has another name, and is no news.
		return fmt.Errorf("make a Machine: %s", strings.ReplaceAll(err.Error(), name, "NEW"))
	}

	return nil
}

func (r *Reconciler) createNamed(ctx context.Context, seen *observation, action rollout.CreateMachine, name string) error {
	tcp := seen.controlPlane

	infrastructure, err := r.newInfrastructure(ctx, seen, name)
	if err != nil {
		return err
	}

	infrastructureRef := clusterv1.ContractVersionedObjectReference{
		APIGroup: infrastructure.GroupVersionKind().Group, Kind: infrastructure.GetKind(), Name: name,
	}

	if err := r.applyNew(ctx, seen, infrastructure); err != nil {
		return r.cleanUp(ctx, err, infrastructure)
	}

	config, err := toUnstructured(r.Client.Scheme(), newConfig(tcp, seen.clusterName, name))
	if err != nil {
		return r.cleanUp(ctx, err, infrastructure)
	}

	if err := r.applyNew(ctx, seen, config); err != nil {
		return r.cleanUp(ctx, err, config, infrastructure)
	}

	machine := newMachine(tcp, seen.clusterName, name, action)
	machine.Spec.InfrastructureRef = infrastructureRef
	machine.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: bootstrapv1.GroupVersion.Group, Kind: talosConfigKind, Name: name,
	}

	made, err := toUnstructured(r.Client.Scheme(), machine)
	if err == nil {
		err = r.apply(ctx, fieldManager, made)
	}

	if err != nil {
		return r.notMade(ctx, seen, err, name, config, infrastructure)
	}

	r.deferrer.DeferNextReconcileUntilCacheUpToDate(tcp, machineGVK, made.GetResourceVersion())

	return nil
}

// lookBound is how long the last look at a Machine may take that could not be made. The reconcile's own time may be over by then.
const lookBound = 5 * time.Second

// notMade cleans up after a Machine that could not be made. One whose making was not answered may exist, or be made yet: what belongs to it is
// left then, and the sweep removes it when it is old.
func (r *Reconciler) notMade(ctx context.Context, seen *observation, first error, name string, objects ...client.Object) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookBound)
	defer cancel()

	machine := &clusterv1.Machine{}

	switch err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: seen.controlPlane.Namespace, Name: name}, machine); {
	case err == nil && metav1.IsControlledBy(machine, seen.controlPlane):
		r.deferrer.DeferNextReconcileUntilCacheUpToDate(seen.controlPlane, machineGVK, machine.ResourceVersion)

		return nil
	case apierrors.IsNotFound(err) && answered(first):
		return r.cleanUp(ctx, first, objects...)
	default:
		return first
	}
}

// answered says whether the API server has refused something, rather than not said what came of it.
func answered(err error) bool {
	_, said := errors.AsType[*apierrors.StatusError](err)

	// What is not of the API server itself is a proxy's before it.
	return said && !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err) && !apierrors.IsUnexpectedServerError(err)
}

// maxNames is how many names are tried. With one random part in it, hardly ever a second is needed.
const maxNames = 5

// freeName makes a name that no object has: applying to one that exists would change it.
func (r *Reconciler) freeName(ctx context.Context, seen *observation) (string, error) {
	for range maxNames {
		name, err := rollout.MachineName(seen.controlPlane.Spec.MachineNaming.Template, rollout.Naming{
			Cluster: seen.clusterName, ControlPlane: seen.controlPlane.Name, Random: rand.String(rollout.RandomLength),
		})
		if err != nil {
			return "", fmt.Errorf("TalosControlPlane %s: spec.machineNaming.template: %w", seen.controlPlane.Name, err)
		}

		taken, err := r.taken(ctx, seen, name)
		if err != nil {
			return "", err
		}

		if !taken {
			return name, nil
		}
	}

	return "", fmt.Errorf("TalosControlPlane %s: spec.machineNaming.template gives names that are taken", seen.controlPlane.Name)
}

// taken says whether a Machine, a TalosConfig or an infrastructure machine has a name.
func (r *Reconciler) taken(ctx context.Context, seen *observation, name string) (bool, error) {
	key := client.ObjectKey{Namespace: seen.controlPlane.Namespace, Name: name}

	for _, object := range []client.Object{&clusterv1.Machine{}, &bootstrapv1.TalosConfig{}} {
		if err := r.Client.Get(ctx, key, object); client.IgnoreNotFound(err) != nil {
			return false, err
		} else if err == nil {
			return true, nil
		}
	}

	if seen.template == nil {
		return false, nil
	}

	kind := seen.template.GroupVersionKind()
	kind.Kind = strings.TrimSuffix(kind.Kind, clusterv1.TemplateSuffix)

	infrastructure := &metav1.PartialObjectMetadata{}
	infrastructure.SetGroupVersionKind(kind)

	err := seen.ofKind(ctx, kind.GroupKind(), func(ctx context.Context) error { return r.Client.Get(ctx, key, infrastructure) })

	// Without the right to read the kind a machine can be made all the same, and hardly ever has another its name.
	return err == nil, ctx.Err()
}

// cleanUp removes what was made before something failed. The error is the first.
func (r *Reconciler) cleanUp(ctx context.Context, first error, objects ...client.Object) error {
	faults := []error{first}

	for _, object := range objects {
		if object.GetUID() == "" {
			continue // it was not made
		}

		uid := object.GetUID()
		if err := r.Client.Delete(context.WithoutCancel(ctx), object, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			faults = append(faults, fmt.Errorf("remove %s again: %w", object.GetName(), err))
		}
	}

	return errors.Join(faults...)
}

// deleteMachine deletes a Machine if it is still what the decision was made by.
func (r *Reconciler) deleteMachine(ctx context.Context, seen *observation, name string) error {
	m, err := seen.machine(name)
	if err != nil {
		return err
	}

	uid, version := m.stored.UID, m.stored.ResourceVersion

	deleted, err := r.deletions.Delete(ctx, m.stored, client.Preconditions{UID: &uid, ResourceVersion: &version})

	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("delete Machine %s: %w", name, err)
	}

	if deleted != nil {
		r.deferrer.DeferNextReconcileUntilCacheUpToDate(seen.controlPlane, machineGVK, deleted.GetResourceVersion())
	}

	return nil
}

// adopt makes the control plane the controller of a Machine, if it is not being deleted: a cache that is behind may see a Machine whose owner the
// garbage collector has taken off because it is to stay, and not yet why.
func (r *Reconciler) adopt(ctx context.Context, seen *observation, name string) error {
	tcp := &controlplanev1.TalosControlPlane{}
	if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(seen.controlPlane), tcp); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("adopt Machine %s: %w", name, err)
	}

	if tcp.UID != seen.controlPlane.UID || !tcp.DeletionTimestamp.IsZero() {
		return &notYetError{fmt.Errorf("adopt Machine %s: the control plane is being deleted", name)}
	}

	return r.changeMachine(ctx, seen, name, func(machine *clusterv1.Machine) error {
		return controllerutil.SetControllerReference(seen.controlPlane, machine, r.Client.Scheme())
	})
}

// setHook puts our hook on a Machine, or takes it off.
func (r *Reconciler) setHook(ctx context.Context, seen *observation, name string, on bool) error {
	return r.changeMachine(ctx, seen, name, func(machine *clusterv1.Machine) error {
		if on {
			metav1.SetMetaDataAnnotation(&machine.ObjectMeta, controlplanev1.PreTerminateHookAnnotation, "")
		} else {
			delete(machine.Annotations, controlplanev1.PreTerminateHookAnnotation)
		}

		return nil
	})
}

func (r *Reconciler) recordAddress(ctx context.Context, seen *observation, name string) error {
	return r.changeMachine(ctx, seen, name, func(machine *clusterv1.Machine) error {
		metav1.SetMetaDataAnnotation(&machine.ObjectMeta, controlplanev1.HadAddressAnnotation, "")

		return nil
	})
}

func (r *Reconciler) recordMember(ctx context.Context, seen *observation, action rollout.RecordMember) error {
	return r.changeMachine(ctx, seen, action.Machine, func(machine *clusterv1.Machine) error {
		recorded, err := rollout.ParseMembers(machine.Annotations[controlplanev1.EtcdMembersAnnotation])
		if err != nil {
			return err
		}

		metav1.SetMetaDataAnnotation(&machine.ObjectMeta, controlplanev1.EtcdMembersAnnotation, rollout.FormatMembers(recorded, action.Member))

		return nil
	})
}

// changeMachine changes the metadata of a Machine if it is still what the decision was made by.
func (r *Reconciler) changeMachine(ctx context.Context, seen *observation, name string, change func(*clusterv1.Machine) error) error {
	m, err := seen.machine(name)
	if err != nil {
		return err
	}

	wanted := m.stored.DeepCopy()
	if err := change(wanted); err != nil {
		return fmt.Errorf("machine %s: %w", name, err)
	}

	err = r.Client.Patch(ctx, wanted, client.MergeFromWithOptions(m.stored, client.MergeFromWithOptimisticLock{}))

	switch {
	case apierrors.IsNotFound(err):
		return nil // and so is what there was to do
	case err != nil:
		return fmt.Errorf("change Machine %s: %w", name, err)
	}

	r.deferrer.DeferNextReconcileUntilCacheUpToDate(seen.controlPlane, machineGVK, wanted.ResourceVersion)

	// The conditions are reported after this.
	m.object.ObjectMeta, m.stored.ObjectMeta = *wanted.ObjectMeta.DeepCopy(), *wanted.ObjectMeta.DeepCopy()

	return nil
}
