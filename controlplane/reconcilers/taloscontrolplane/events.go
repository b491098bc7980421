// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/maesh-dev/ichor/internal/prose"
	"github.com/maesh-dev/ichor/internal/rollout"
)

// Reasons of events about a TalosControlPlane, beside those of its plan.
const (
	eventActionFailed      = "ActionFailed"
	eventKubeconfigCreated = "KubeconfigCreated"
	eventKubeconfigRenewed = "KubeconfigRenewed"
)

// actionKubeconfig is the action of events about the kubeconfig.
const actionKubeconfig = "KeepKubeconfig"

// recordAction tells what was done, once for each time that it is done. What is merely noted down is no news.
func (r *Reconciler) recordAction(seen *observation, decision rollout.Decision, fault error) {
	if _, waits := errors.AsType[*notYetError](fault); waits || apierrors.IsConflict(fault) {
		return
	}

	name := rollout.Name(decision.Action)
	counted(name, fault)

	machine, news := tale(decision.Action)

	var related runtime.Object
	if m, err := seen.machine(machine); err == nil {
		related = m.stored
	}

	switch {
	case fault != nil:
		r.Recorder.Eventf(seen.controlPlane, related, corev1.EventTypeWarning, eventActionFailed, name, "%s",
			prose.Shorten(decision.Message+": "+fault.Error()))
	case news:
		r.Recorder.Eventf(seen.controlPlane, related, corev1.EventTypeNormal, decision.Reason, name, "%s", prose.Shorten(decision.Message))
	}
}

// tale is the Machine that an action is about, if it is about one, and whether the action is news.
func tale(action rollout.Action) (machine string, news bool) {
	switch action := action.(type) {
	case rollout.Rest, rollout.Wait, rollout.RecordBootstrap, rollout.RecordRemediation, rollout.ClearRemediation:
		return "", false
	case rollout.RecordAddress:
		return action.Machine, false
	case rollout.RecordMember:
		return action.Machine, false
	case rollout.AdoptMachine:
		return action.Machine, true
	case rollout.AddHook:
		return action.Machine, true
	case rollout.Bootstrap:
		return action.Machine, true
	case rollout.DeleteMachine:
		return action.Machine, true
	case rollout.ForwardLeadership:
		return action.Machine, true
	case rollout.LeaveEtcd:
		return action.Machine, true
	case rollout.RemoveEtcdMember:
		return action.Machine, true
	case rollout.ReleaseHook:
		return action.Machine, true
	case rollout.RecordServing, rollout.CreateMachine, rollout.ReleaseHooks, rollout.DeleteMachines, rollout.ReleaseControlPlane:
		return "", true
	}

	return "", true
}

func (r *Reconciler) recordKubeconfig(seen *observation, secret *corev1.Secret, reason, note string, args ...any) {
	r.Recorder.Eventf(seen.controlPlane, secret, corev1.EventTypeNormal, reason, actionKubeconfig, note, args...)
}
