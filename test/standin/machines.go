// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reconcileMachine starts the machine once it has bootstrap data.
func (p *Providers) reconcileMachine(ctx context.Context, object *unstructured.Unstructured) error {
	if done, _, err := unstructured.NestedBool(object.Object, "status", "initialization", "provisioned"); err != nil || done {
		return err
	}

	machine := &clusterv1.Machine{}
	if found, err := p.owner(ctx, object, "Machine", machine); err != nil || !found {
		return err
	}

	if ready, err := p.hasData(ctx, machine.Namespace, machine.Spec.Bootstrap); err != nil || !ready {
		return err
	}

	id := providerID(object.GetNamespace(), object.GetName())
	if err := p.register(ctx, object.GetNamespace()+"-"+object.GetName(), id, machine.Spec.Version); err != nil {
		return err
	}

	return p.patch(ctx, object, map[string]any{"providerID": id}, provisioned(nil))
}

// reconcileMachinePool starts as many machines as the pool is to have.
func (p *Providers) reconcileMachinePool(ctx context.Context, object *unstructured.Unstructured) error {
	pool := &clusterv1.MachinePool{}
	if found, err := p.owner(ctx, object, "MachinePool", pool); err != nil || !found {
		return err
	}

	if ready, err := p.hasData(ctx, pool.Namespace, pool.Spec.Template.Spec.Bootstrap); err != nil || !ready {
		return err
	}

	existing, _, err := unstructured.NestedInt64(object.Object, "status", "replicas")
	if err != nil || existing == int64(ptr.Deref(pool.Spec.Replicas, 1)) {
		return err
	}

	ids := []any{}

	for i := range ptr.Deref(pool.Spec.Replicas, 1) {
		name := fmt.Sprintf("%s-%d", object.GetName(), i)
		id := providerID(object.GetNamespace(), name)

		if err := p.register(ctx, object.GetNamespace()+"-"+name, id, pool.Spec.Template.Spec.Version); err != nil {
			return err
		}

		ids = append(ids, id)
	}

	return p.patch(ctx, object, map[string]any{"providerIDList": ids},
		provisioned(map[string]any{"ready": true, "replicas": int64(len(ids))}))
}

// owner reads the object that controls another; false means that there is none, or that it is on its way out.
func (p *Providers) owner(ctx context.Context, object *unstructured.Unstructured, kind string, owner client.Object) (bool, error) {
	for _, reference := range object.GetOwnerReferences() {
		if reference.Kind != kind || !util.HasOwner([]metav1.OwnerReference{reference}, clusterv1.GroupVersion.String(), []string{kind}) {
			continue
		}

		err := p.writer.Get(ctx, client.ObjectKey{Namespace: object.GetNamespace(), Name: reference.Name}, owner)

		return err == nil && owner.GetDeletionTimestamp() == nil, err
	}

	return false, nil
}

// register makes the machine a Node that is ready, as its kubelet would.
func (p *Providers) register(ctx context.Context, name, id, version string) error {
	return client.IgnoreAlreadyExists(p.workload.Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.NodeSpec{ProviderID: id},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
				{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
				{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse},
				{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse},
			},
			NodeInfo: corev1.NodeSystemInfo{KubeletVersion: version},
		},
	}))
}

func providerID(namespace, name string) string {
	return fmt.Sprintf("standin://%s/%s", namespace, name)
}

// withFields returns a copy of the object with fields set below one of its own; nil means that they are all set already.
func withFields(object *unstructured.Unstructured, below string, fields map[string]any) (*unstructured.Unstructured, error) {
	before, _, err := unstructured.NestedMap(object.Object, below)
	if err != nil {
		return nil, err
	}

	after := map[string]any{}
	maps.Copy(after, before)
	maps.Copy(after, fields)

	if equality.Semantic.DeepEqual(before, after) || len(fields) == 0 {
		return nil, nil
	}

	changed := object.DeepCopy()

	return changed, unstructured.SetNestedMap(changed.Object, after, below)
}
