// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

// reconcileControlPlane sees to the control plane's Machine, and says that the control plane answers once that runs.
func (p *Providers) reconcileControlPlane(ctx context.Context, object *unstructured.Unstructured) error {
	version, _, err := unstructured.NestedString(object.Object, "spec", "version")
	if err != nil || version == "" {
		return err
	}

	machine := &clusterv1.Machine{}

	err = p.writer.Get(ctx, client.ObjectKey{Namespace: object.GetNamespace(), Name: object.GetName() + "-control-plane"}, machine)
	if apierrors.IsNotFound(err) {
		return p.createControlPlaneMachine(ctx, object, version)
	}

	if err != nil || !ptr.Deref(machine.Status.Initialization.InfrastructureProvisioned, false) {
		return err
	}

	return p.patch(ctx, object, nil, map[string]any{
		"initialization":    map[string]any{"controlPlaneInitialized": true},
		"version":           version,
		"versions":          []any{map[string]any{"version": version, "replicas": int64(1)}},
		"replicas":          int64(1),
		"readyReplicas":     int64(1),
		"availableReplicas": int64(1),
		"upToDateReplicas":  int64(1),
	})
}

// createControlPlaneMachine creates the Machine and what it refers to, the Machine last.
func (p *Providers) createControlPlaneMachine(ctx context.Context, controlPlane *unstructured.Unstructured, version string) error {
	cluster := controlPlane.GetLabels()[clusterv1.ClusterNameLabel]
	meta := metav1.ObjectMeta{
		Namespace: controlPlane.GetNamespace(),
		Name:      controlPlane.GetName() + "-control-plane",
		Labels:    map[string]string{clusterv1.ClusterNameLabel: cluster, clusterv1.MachineControlPlaneLabel: ""},
	}

	infrastructure := &unstructured.Unstructured{}
	infrastructure.SetGroupVersionKind(MachineKind)
	infrastructure.SetNamespace(meta.Namespace)
	infrastructure.SetName(meta.Name)
	infrastructure.SetLabels(meta.Labels)

	config := &unstructured.Unstructured{}
	config.SetGroupVersionKind(bootstrapv1.GroupVersion.WithKind("TalosConfig"))
	config.SetNamespace(meta.Namespace)
	config.SetName(meta.Name)
	config.SetLabels(meta.Labels)

	if err := unstructured.SetNestedField(config.Object, "MachineName", "spec", "hostname", "source"); err != nil {
		return err
	}

	owned := *meta.DeepCopy()
	owned.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(controlPlane, ControlPlaneKind)}
	machine := &clusterv1.Machine{
		ObjectMeta: owned,
		Spec: clusterv1.MachineSpec{
			ClusterName: cluster,
			Version:     version,
			Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: bootstrapv1.GroupVersion.Group, Kind: "TalosConfig", Name: meta.Name,
			}},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: MachineKind.Group, Kind: MachineKind.Kind, Name: meta.Name,
			},
		},
	}

	for _, object := range []client.Object{infrastructure, config, machine} {
		if err := p.writer.Create(ctx, object); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("create %s: %w", object.GetName(), err)
		}
	}

	return nil
}
