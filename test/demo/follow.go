// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
)

const (
	// clusterTimeout bounds the wait for a control plane to be as it should, on a busy machine.
	clusterTimeout = 6 * time.Minute

	lookPeriod = time.Second
)

// follow prints the plan of the control plane each time that it changes, until there are so many machines, all is as the spec wants it, and so many
// workers are available. With less than zero workers it does not wait for any.
func (s *show) follow(replicas, workers int) error {
	ctx, cancel := context.WithTimeout(s.ctx, clusterTimeout)
	defer cancel()

	w, err := s.client.Watch(ctx, &controlplanev1.TalosControlPlaneList{}, client.InNamespace(namespace),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", controlPlane)})
	if err != nil {
		return fmt.Errorf("watch TalosControlPlane %s: %w", controlPlane, err)
	}
	defer w.Stop()

	var (
		begin  = time.Now()
		last   string
		object *controlplanev1.TalosControlPlane
		look   = time.NewTicker(lookPeriod)
	)
	defer look.Stop()

	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the control plane is not as it should be: %w; its plan: %s", ctx.Err(), last)
		case event, open := <-w.ResultChan():
			next, ok := event.Object.(*controlplanev1.TalosControlPlane)
			if !open || !ok {
				return errors.Join(errors.New("the watch of the control plane has ended"), ctx.Err())
			}

			object = next
			if plan := planOf(object); plan != "" && plan != last {
				last = plan
				fmt.Fprintf(out, "%6.1f s  %s\n", time.Since(begin).Seconds(), plan)
			}
		case <-look.C:
		}

		if object == nil || !settled(object, replicas) {
			continue
		}

		available, err := s.availableWorkers(ctx)
		if err != nil {
			return err
		}

		if workers < 0 || available == workers {
			return nil
		}
	}
}

// planOf is what the control plane does, and why; nothing as long as the plan is one for an earlier spec.
func planOf(object *controlplanev1.TalosControlPlane) string {
	plan := object.Status.Plan
	if plan.Action == "" || object.Status.ObservedGeneration != object.Generation {
		return ""
	}

	text := plan.Action + " " + plan.Reason
	if plan.Message != "" {
		text += ": " + plan.Message
	}

	return text
}

// settled says whether there are so many machines, and nothing to do.
func settled(object *controlplanev1.TalosControlPlane, replicas int) bool {
	status := object.Status
	for _, count := range []*int32{status.Replicas, status.ReadyReplicas, status.UpToDateReplicas} {
		if int(ptr.Deref(count, -1)) != replicas {
			return false
		}
	}

	return status.ObservedGeneration == object.Generation && status.Plan.Action == "None"
}

func (s *show) availableWorkers(ctx context.Context) (int, error) {
	object := &clusterv1.MachineDeployment{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: deployment}, object); err != nil {
		return 0, err
	}

	return int(ptr.Deref(object.Status.AvailableReplicas, 0)), nil
}
