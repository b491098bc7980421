// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/rollout"
)

// execute does the one thing that was decided. What reaches machines without a rollout is seen to when nothing else is done or it
// could not be, and so is the kubeconfig; without it the API server of a new cluster would never be found to answer.
func (r *Reconciler) execute(ctx context.Context, seen *observation, decision rollout.Decision) error {
	if !acts(decision.Action) {
		return r.settleCounted(ctx, seen)
	}

	ctrl.LoggerFrom(ctx).Info(decision.Message, "action", rollout.Name(decision.Action), "reason", decision.Reason)

	err := r.act(ctx, seen, decision)
	r.recordAction(seen, decision, err)

	// What fails may fail for days. Everything else must not wait for it: kubeconfigs expire, and a Machine that drains for ever needs its new
	// timeout.
	if err != nil && !apierrors.IsConflict(err) && ctx.Err() == nil {
		if other := r.settleCounted(ctx, seen); !apierrors.IsConflict(other) {
			err = errors.Join(err, other)
		}
	}

	return err
}

// settleCounted settles, and counts it when that fails.
func (r *Reconciler) settleCounted(ctx context.Context, seen *observation) error {
	err := r.settle(ctx, seen)
	if err != nil && !apierrors.IsConflict(err) {
		counted(actionSettle, err)
	}

	return err
}

// settle sees to what may change at any time.
func (r *Reconciler) settle(ctx context.Context, seen *observation) error {
	if seen.cluster == nil || !seen.controlPlane.DeletionTimestamp.IsZero() {
		return nil
	}

	seen.kubeconfigFault, seen.kubeconfigLooked = r.ensureKubeconfig(ctx, seen), true

	return errors.Join(seen.kubeconfigFault, r.ownTemplate(ctx, seen), r.propagate(ctx, seen), r.sweep(ctx, seen))
}

//nolint:gocyclo // One case for each action.
func (r *Reconciler) act(ctx context.Context, seen *observation, decision rollout.Decision) error {
	switch action := decision.Action.(type) {
	case rollout.Rest, rollout.Wait:
		return nil
	case rollout.AdoptMachine:
		return r.adopt(ctx, seen, action.Machine)
	case rollout.AddHook:
		return r.setHook(ctx, seen, action.Machine, true)
	case rollout.RecordAddress:
		return r.recordAddress(ctx, seen, action.Machine)
	case rollout.RecordMember:
		return r.recordMember(ctx, seen, action)
	case rollout.RecordBootstrap:
		return r.recordBootstrap(ctx, seen, action.Record)
	case rollout.RecordServing:
		return r.annotate(ctx, seen, controlplanev1.ServedElsewhereAnnotation, seen.cluster.Spec.ControlPlaneEndpoint.String())
	case rollout.Bootstrap:
		return r.bootstrap(ctx, seen, action.Machine)
	case rollout.CreateMachine:
		return r.createMachine(ctx, seen, action)
	case rollout.DeleteMachine:
		return r.deleteMachine(ctx, seen, action.Machine)
	case rollout.RecordRemediation:
		return r.recordRemediation(ctx, seen, &action.Record)
	case rollout.ClearRemediation:
		return r.recordRemediation(ctx, seen, nil)
	case rollout.ForwardLeadership:
		return r.forwardLeadership(ctx, seen, action)
	case rollout.LeaveEtcd:
		return r.leaveEtcd(ctx, seen, action)
	case rollout.RemoveEtcdMember:
		return seen.nodes.RemoveEtcdMember(ctx, action.Through, action.Member)
	case rollout.ReleaseHook:
		return r.setHook(ctx, seen, action.Machine, false)
	case rollout.ReleaseHooks:
		return each(action.Machines, func(name string) error { return r.setHook(ctx, seen, name, false) })
	case rollout.DeleteMachines:
		return each(action.Machines, func(name string) error { return r.deleteMachine(ctx, seen, name) })
	case rollout.ReleaseControlPlane:
		return r.release(ctx, seen)
	}

	return fmt.Errorf("action %T is not known", decision.Action)
}

// each does something for every machine, also when it fails for one. A conflict is the whole's: then all are looked at again.
func each(machines []string, do func(name string) error) error {
	var faults []error

	for _, name := range machines {
		err := do(name)
		if apierrors.IsConflict(err) {
			return err
		}

		faults = append(faults, err)
	}

	return errors.Join(faults...)
}
