// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

// Two field managers apply: one has what a machine is made with, the other labels and annotations of TalosConfig and infrastructure machine,
// which follow the template.
const (
	fieldManager         = "ichor-controlplane"
	metadataFieldManager = "ichor-controlplane-metadata"
)

// propagate has reach the machines what reaches them without a rollout: labels, annotations, timeouts, taints and readiness gates.
func (r *Reconciler) propagate(ctx context.Context, seen *observation) error {
	var faults []error

	for i, m := range seen.machines {
		switch out := &seen.snapshot.Machines[i]; {
		case !out.Ours:
		case out.Deletion != nil:
			faults = append(faults, r.propagateToLeaving(ctx, seen, m))
		default:
			faults = append(faults, r.propagateTo(ctx, seen, m))
		}
	}

	return errors.Join(faults...)
}

func (r *Reconciler) propagateTo(ctx context.Context, seen *observation, m *machine) error {
	wanted, err := toUnstructured(r.Client.Scheme(), machineFor(seen.controlPlane, seen.clusterName, m.stored))
	if err != nil {
		return err
	}

	after, err := r.applyOnce(ctx, seen, m, fieldManager, wanted, stateOf(m.stored, m.stored.Spec))
	if err != nil {
		return fmt.Errorf("machine %s: %w", m.stored.Name, err)
	}

	if after != nil {
		machine := &clusterv1.Machine{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(after.Object, machine); err != nil {
			return err
		}

		seen.plane.remember(m.stored.UID, wanted, stateOf(machine, machine.Spec))
		r.deferrer.DeferNextReconcileUntilCacheUpToDate(seen.controlPlane, machineGVK, after.GetResourceVersion())
		m.object.ObjectMeta, m.stored.ObjectMeta = *machine.ObjectMeta.DeepCopy(), *machine.ObjectMeta.DeepCopy()
		m.object.Spec, m.stored.Spec = *machine.Spec.DeepCopy(), *machine.Spec.DeepCopy()
	}

	if m.config != nil {
		if err := r.propagateMetadata(ctx, seen, m, m.config, bootstrapv1.GroupVersion.String(), talosConfigKind); err != nil {
			return err
		}
	}

	if m.infrastructure != nil {
		kind := m.infrastructure.GroupVersionKind()

		return r.propagateMetadata(ctx, seen, m, m.infrastructure, kind.GroupVersion().String(), kind.Kind)
	}

	return nil
}

// propagateToLeaving has reach a Machine that is being deleted what its deletion depends on.
func (r *Reconciler) propagateToLeaving(ctx context.Context, seen *observation, m *machine) error {
	template := &seen.controlPlane.Spec.MachineTemplate.Spec

	wanted := m.stored.DeepCopy()
	wanted.Spec.Deletion = deletionFor(template.Deletion)
	wanted.Spec.Taints = template.Taints

	// Cluster API has a default for this one, which must not be removed and set for ever.
	if wanted.Spec.Deletion.NodeDeletionTimeoutSeconds == nil {
		wanted.Spec.Deletion.NodeDeletionTimeoutSeconds = m.stored.Spec.Deletion.NodeDeletionTimeoutSeconds
	}

	if equality.Semantic.DeepEqual(wanted.Spec, m.stored.Spec) {
		return nil
	}

	if err := r.Client.Patch(ctx, wanted, client.MergeFrom(m.stored)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("machine %s: %w", wanted.Name, err)
	}

	return nil
}

// propagateMetadata has reach the labels and annotations of the template an object of a machine.
func (r *Reconciler) propagateMetadata(ctx context.Context, seen *observation, m *machine, object metav1.Object, apiVersion, kind string) error {
	wanted := &unstructured.Unstructured{}
	wanted.SetAPIVersion(apiVersion)
	wanted.SetKind(kind)
	wanted.SetNamespace(object.GetNamespace())
	wanted.SetName(object.GetName())
	// One that is gone meanwhile must not be made.
	wanted.SetUID(object.GetUID())
	wanted.SetLabels(labelsFor(seen.controlPlane, seen.clusterName))
	wanted.SetAnnotations(annotationsFor(seen.controlPlane))

	after, err := r.applyOnce(ctx, seen, m, metadataFieldManager, wanted, stateOf(object, nil))
	if err != nil {
		return fmt.Errorf("%s %s: %w", kind, object.GetName(), err)
	}

	if after != nil {
		seen.plane.remember(m.stored.UID, wanted, stateOf(after, nil))
	}

	return nil
}

// applyOnce applies unless that was done to the object as it is. It returns the object as it is after, nil when nothing was applied.
func (r *Reconciler) applyOnce(ctx context.Context, seen *observation, m *machine, manager string, wanted *unstructured.Unstructured, state string,
) (*unstructured.Unstructured, error) {
	if seen.plane.applied[m.stored.UID][wanted.GroupVersionKind().GroupKind()] == digest(wanted.Object)+state {
		return nil, nil
	}

	after := wanted.DeepCopy()
	if err := r.apply(ctx, manager, after); err != nil {
		return nil, client.IgnoreNotFound(err)
	}

	return after, nil
}

// apply has the API server merge an object into what is stored, which it then holds.
func (r *Reconciler) apply(ctx context.Context, manager string, object *unstructured.Unstructured) error {
	return r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.ForceOwnership, client.FieldOwner(manager))
}

// applyNew makes an object whose labels and annotations follow the template. The manager of the metadata takes those over before the other
// lets go of them; what only the infrastructure's template says stays the other's.
func (r *Reconciler) applyNew(ctx context.Context, seen *observation, object *unstructured.Unstructured) error {
	kind := object.GetKind()
	rest := object.DeepCopy()

	if err := r.apply(ctx, fieldManager, object); err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}

	metadata := &unstructured.Unstructured{}
	metadata.SetGroupVersionKind(object.GroupVersionKind())
	metadata.SetNamespace(object.GetNamespace())
	metadata.SetName(object.GetName())
	metadata.SetUID(object.GetUID())
	metadata.SetLabels(labelsFor(seen.controlPlane, seen.clusterName))
	metadata.SetAnnotations(annotationsFor(seen.controlPlane))

	if err := r.apply(ctx, metadataFieldManager, metadata); err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}

	rest.SetUID(object.GetUID())
	rest.SetLabels(without(rest.GetLabels(), labelsFor(seen.controlPlane, seen.clusterName)))
	rest.SetAnnotations(without(rest.GetAnnotations(), annotationsFor(seen.controlPlane)))

	if err := r.apply(ctx, fieldManager, rest); err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}

	return nil
}

func without(all, some map[string]string) map[string]string {
	out := map[string]string{}

	for key, value := range all {
		if _, ok := some[key]; !ok {
			out[key] = value
		}
	}

	return out
}

// toUnstructured is an object as it is applied: without what has not been said.
func toUnstructured(scheme *runtime.Scheme, object client.Object) (*unstructured.Unstructured, error) {
	out := &unstructured.Unstructured{}
	if err := scheme.Convert(object, out, nil); err != nil {
		return nil, fmt.Errorf("%T: %w", object, err)
	}

	unstructured.RemoveNestedField(out.Object, "status")
	unstructured.RemoveNestedField(out.Object, "metadata", "creationTimestamp")

	return out, nil
}

// stateOf stands for what of an object others may change and applying may mend.
func stateOf(object metav1.Object, spec any) string {
	return digest(map[string]any{
		"labels": object.GetLabels(), "annotations": object.GetAnnotations(), "owners": object.GetOwnerReferences(), "spec": spec,
	})
}

func digest(v any) string {
	content, err := json.Marshal(v)
	if err != nil {
		return "" // objects of an API are JSON
	}

	sum := sha256.Sum256(content)

	return hex.EncodeToString(sum[:])
}
