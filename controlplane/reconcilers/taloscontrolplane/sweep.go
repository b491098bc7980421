// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

// sweepAge is how old what is left of a Machine that was never made must be: longer than it takes to make one.
const sweepAge = 2 * time.Minute

// sweep removes the TalosConfigs and infrastructure machines of Machines that were never made, because the manager ended in between. They
// belong to the control plane and to no Machine; an infrastructure machine that has one is that Machine's business.
func (r *Reconciler) sweep(ctx context.Context, seen *observation) error {
	configs := &bootstrapv1.TalosConfigList{}
	if err := r.listOwn(ctx, seen, configs); err != nil {
		return fmt.Errorf("list TalosConfigs: %w", err)
	}

	var faults []error

	for i := range configs.Items {
		faults = append(faults, r.sweepOne(ctx, seen, &configs.Items[i]))
	}

	infrastructure, err := r.infrastructureMachines(ctx, seen)
	faults = append(faults, err)

	for i := range infrastructure {
		faults = append(faults, r.sweepOne(ctx, seen, &infrastructure[i]))
	}

	return errors.Join(faults...)
}

// infrastructureMachines are the control plane's, of the kind that it makes now. Those of an earlier template's kind are left.
func (r *Reconciler) infrastructureMachines(ctx context.Context, seen *observation) ([]metav1.PartialObjectMetadata, error) {
	if seen.template == nil {
		return nil, nil
	}

	kind := seen.template.GroupVersionKind()
	kind.Kind = strings.TrimSuffix(kind.Kind, clusterv1.TemplateSuffix) + "List"

	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)

	single := kind
	single.Kind = strings.TrimSuffix(kind.Kind, "List")

	err := seen.ofKind(ctx, single.GroupKind(), func(ctx context.Context) error { return r.listOwn(ctx, seen, list) })
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", kind.Kind, err)
	}

	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(single)
	}

	return list.Items, nil
}

func (r *Reconciler) listOwn(ctx context.Context, seen *observation, list client.ObjectList) error {
	return r.Client.List(ctx, list, client.InNamespace(seen.controlPlane.Namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: seen.clusterName, clusterv1.MachineControlPlaneLabel: ""})
}

func (r *Reconciler) sweepOne(ctx context.Context, seen *observation, object client.Object) error {
	// Of a restored backup's objects, which may come before their Machines, the owner has the name of this control plane, and is another.
	ours := slices.ContainsFunc(object.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == seen.controlPlane.UID })

	if _, err := seen.machine(object.GetName()); err == nil || !ours || metav1.GetControllerOf(object) != nil ||
		!object.GetDeletionTimestamp().IsZero() || seen.snapshot.Now.Sub(object.GetCreationTimestamp().Time) < sweepAge {
		return nil
	}

	// The cache of Machines may be behind.
	err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(object), &clusterv1.Machine{})
	if !apierrors.IsNotFound(err) {
		return err
	}

	uid, version := object.GetUID(), object.GetResourceVersion()

	err = r.Client.Delete(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if err = client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("remove what is left of Machine %s, which was never made: %w", object.GetName(), err)
	}

	ctrl.LoggerFrom(ctx).Info("Removed what was left of a Machine that was never made", "name", object.GetName())

	return nil
}
