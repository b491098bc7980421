// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/rollout"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/talos"
)

// recordBootstrap writes the record to the Secret first, which outlives the control plane, and each only if it is what was looked at.
func (r *Reconciler) recordBootstrap(ctx context.Context, seen *observation, record rollout.BootstrapRecord) error {
	if seen.bundle == nil {
		return fmt.Errorf("record the bootstrap: Secret %s does not exist", secrets.BundleName(seen.clusterName))
	}

	if seen.bundle.Annotations[controlplanev1.BootstrapAnnotation] != record.Marshal() {
		wanted := seen.bundle.DeepCopy()
		metav1.SetMetaDataAnnotation(&wanted.ObjectMeta, controlplanev1.BootstrapAnnotation, record.Marshal())

		err := r.Client.Patch(ctx, wanted, client.MergeFromWithOptions(seen.bundle, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) {
			return err
		}

		// What the API server says of a Secret may quote it.
		if err != nil {
			return fmt.Errorf("record the bootstrap in Secret %s: %w", wanted.Name, secrets.WithoutWords(err))
		}

		r.deferrer.DeferNextReconcileUntilCacheUpToDate(seen.controlPlane, secretGVK, wanted.ResourceVersion)
	}

	return r.annotate(ctx, seen, controlplanev1.BootstrapAnnotation, record.Marshal())
}

func (r *Reconciler) recordRemediation(ctx context.Context, seen *observation, record *rollout.RemediationRecord) error {
	if record == nil {
		return r.annotate(ctx, seen, controlplanev1.RemediationInProgressAnnotation, "")
	}

	return r.annotate(ctx, seen, controlplanev1.RemediationInProgressAnnotation, record.Marshal())
}

// annotate sets an annotation on the control plane, or removes it when the value is empty, if the control plane is what was looked at.
func (r *Reconciler) annotate(ctx context.Context, seen *observation, name, value string) error {
	return r.changeControlPlane(ctx, seen, func(tcp *controlplanev1.TalosControlPlane) {
		if value == "" {
			delete(tcp.Annotations, name)
		} else {
			metav1.SetMetaDataAnnotation(&tcp.ObjectMeta, name, value)
		}
	})
}

func (r *Reconciler) changeControlPlane(ctx context.Context, seen *observation, change func(*controlplanev1.TalosControlPlane)) error {
	before := seen.controlPlane
	wanted := before.DeepCopy()
	change(wanted)

	if err := r.Client.Patch(ctx, wanted, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}

	r.deferrer.DeferNextReconcileUntilCacheUpToDate(before, controlPlaneGVK, wanted.ResourceVersion)
	seen.controlPlane = wanted

	return nil
}

// notBegun are the errors after which a node has certainly not begun to bootstrap etcd.
var notBegun = []error{
	talos.ErrNoAddress, talos.ErrForeign, talos.ErrAnotherNode, talos.ErrMaintenance, talos.ErrRefused, talos.ErrClock,
	talos.ErrNotReady, talos.ErrNotFound, talos.ErrPrecondition, talos.ErrUnsupported,
}

// bootstrap calls Bootstrap, after a last look at what is stored now: no cache may be behind in this.
func (r *Reconciler) bootstrap(ctx context.Context, seen *observation, machine string) error {
	tcp := &controlplanev1.TalosControlPlane{}
	if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(seen.controlPlane), tcp); err != nil {
		return fmt.Errorf("bootstrap etcd: %w", err)
	}

	value, set := tcp.Annotations[controlplanev1.BootstrapAnnotation]
	mark := rollout.ParseBootstrapMark(value, set)

	if tcp.UID != seen.controlPlane.UID || !tcp.DeletionTimestamp.IsZero() || annotations.HasPaused(tcp) ||
		mark.Problem != "" || mark.Record.Machine != machine || mark.Record.Done {
		return errors.New("bootstrap etcd: the control plane has changed meanwhile")
	}

	return r.callBootstrap(ctx, seen, machine)
}

// callBootstrap remembers when it called. Whoever says that it has begun, or does not say, is not asked again soon: a second call would stop
// the etcd that the first one starts.
func (r *Reconciler) callBootstrap(ctx context.Context, seen *observation, machine string) error {
	m, err := seen.machine(machine)
	if err != nil {
		return err
	}

	err = seen.nodes.Bootstrap(ctx, machine)

	if !slices.ContainsFunc(notBegun, func(certain error) bool { return errors.Is(err, certain) }) {
		seen.plane.bootstraps[m.object.UID] = r.Clock.Now()
	}

	switch {
	case errors.Is(err, talos.ErrAlreadyExists):
		// Data that is there already is that of an earlier call: the record was the machine's then, too.
		return nil
	case errors.Is(err, talos.ErrNotReady):
		return &notYetError{err}
	default:
		return err
	}
}

// notYetError is what a node cannot do yet and will be able to without anybody's doing, as when its time is not in sync: the plan says so, and
// nothing has failed.
type notYetError struct{ error }

func (e *notYetError) Unwrap() error { return e.error }

func (r *Reconciler) leaveEtcd(ctx context.Context, seen *observation, action rollout.LeaveEtcd) error {
	m, err := seen.machine(action.Machine)
	if err != nil {
		return err
	}

	err = seen.nodes.LeaveEtcd(ctx, action.Machine, action.Member)

	// A node that has not even been asked may yet do it.
	if err != nil && !errors.Is(err, talos.ErrUnreachable) && !errors.Is(err, talos.ErrNoAddress) {
		seen.plane.leaveFailed[m.object.UID] = true
	}

	return err
}

// maxForwards is how often a member is asked to give up leadership. One that leads still then leaves as the leader.
const maxForwards = 3

func (r *Reconciler) forwardLeadership(ctx context.Context, seen *observation, action rollout.ForwardLeadership) error {
	m, err := seen.machine(action.Machine)
	if err != nil {
		return err
	}

	_, err = seen.nodes.ForwardLeadership(ctx, action.Machine, action.From)

	// A node that was not reached has not been asked.
	if !errors.Is(err, talos.ErrUnreachable) && !errors.Is(err, talos.ErrNoAddress) {
		seen.plane.forwards[m.object.UID]++
	}

	return err
}

// release lets the control plane go.
func (r *Reconciler) release(ctx context.Context, seen *observation) error {
	err := r.changeControlPlane(ctx, seen, func(tcp *controlplanev1.TalosControlPlane) {
		controllerutil.RemoveFinalizer(tcp, controlplanev1.TalosControlPlaneFinalizer)
	})
	if client.IgnoreNotFound(err) != nil {
		return err
	}

	r.deferrer.ClearConsistencyStore(client.ObjectKeyFromObject(seen.controlPlane), seen.controlPlane.UID)
	r.forget(client.ObjectKeyFromObject(seen.controlPlane))
	seen.released = true

	return nil
}
