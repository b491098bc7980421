// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/internal/prose"
)

// metadataReader reads of an object of an unknown kind the metadata alone, which a cache can have of any kind.
type metadataReader struct{ client.Reader }

// Get gets the metadata of what is asked for as a whole.
func (r metadataReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	whole, ok := object.(*unstructured.Unstructured)
	if !ok {
		return r.Reader.Get(ctx, key, object, options...)
	}

	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(whole.GroupVersionKind())

	if err := r.Reader.Get(ctx, key, metadata, options...); err != nil {
		return err
	}

	whole.SetName(metadata.Name)
	whole.SetNamespace(metadata.Namespace)
	whole.SetUID(metadata.UID)
	whole.SetResourceVersion(metadata.ResourceVersion)
	whole.SetLabels(metadata.Labels)
	whole.SetAnnotations(metadata.Annotations)
	whole.SetOwnerReferences(metadata.OwnerReferences)
	whole.SetDeletionTimestamp(metadata.DeletionTimestamp)

	return nil
}

// kindBound is how long the metadata of one kind may take to be read. The first read of a kind waits until the cache has all of it, which without
// rights is never: a reconcile must not wait for that as long as it may take.
const kindBound = 5 * time.Second

// ofKind reads something of a kind unless that has failed in this reconcile, and remembers a failure. That an object does not exist is none.
func (o *observation) ofKind(ctx context.Context, kind schema.GroupKind, read func(context.Context) error) error {
	if err := o.unread[kind]; err != nil {
		return err
	}

	bounded, cancel := context.WithTimeout(ctx, kindBound)
	defer cancel()

	err := read(bounded)

	// When the caller has stopped that says nothing of the kind.
	if err == nil || apierrors.IsNotFound(err) || ctx.Err() != nil {
		return err
	}

	const rights = `may the manager get, list and watch the kind? See "Rights to machines" in docs/control-plane.md`

	switch {
	case bounded.Err() != nil:
		err = fmt.Errorf("%s cannot be read within %s: %s", kind, kindBound, rights)
	case apierrors.IsForbidden(err):
		err = fmt.Errorf("%w: %s", err, rights)
	}

	if o.unread == nil {
		o.unread = map[schema.GroupKind]error{}
	}

	o.unread[kind] = err

	return err
}

// unreadable says which kinds cannot be read.
func (o *observation) unreadable() string {
	var all []string

	for _, err := range o.unread {
		all = append(all, err.Error())
	}

	return prose.Named(all)
}

// metadata is that of an object which a reference names, nil when the object does not exist. Cluster API finds the version of the kind.
func (r *Reconciler) metadata(
	ctx context.Context, seen *observation, ref clusterv1.ContractVersionedObjectReference, namespace string,
) (*metav1.PartialObjectMetadata, error) {
	var object *unstructured.Unstructured

	err := seen.ofKind(ctx, schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind}, func(ctx context.Context) (err error) {
		object, err = external.GetObjectFromContractVersionedRef(ctx, metadataReader{r.Client}, ref, namespace)

		return err
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}

	if err != nil {
		return nil, err
	}

	out := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: object.GetName(), Namespace: object.GetNamespace(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
		Labels: object.GetLabels(), Annotations: object.GetAnnotations(), OwnerReferences: object.GetOwnerReferences(),
		DeletionTimestamp: object.GetDeletionTimestamp(),
	}}
	out.SetGroupVersionKind(object.GroupVersionKind())

	return out, nil
}

// infrastructure is the metadata of a Machine's infrastructure machine, or nil.
func (r *Reconciler) infrastructure(ctx context.Context, seen *observation, machine *clusterv1.Machine) (*metav1.PartialObjectMetadata, error) {
	metadata, err := r.metadata(ctx, seen, machine.Spec.InfrastructureRef, machine.Namespace)
	if err != nil {
		return nil, fmt.Errorf("infrastructure of Machine %s: %w", machine.Name, err)
	}

	return metadata, nil
}

// observeTemplate notes whether the template exists that machines are made from.
func (r *Reconciler) observeTemplate(ctx context.Context, seen *observation) error {
	tcp := seen.controlPlane
	if seen.cluster == nil || !tcp.DeletionTimestamp.IsZero() || !seen.cluster.DeletionTimestamp.IsZero() {
		return nil
	}

	ref := tcp.Spec.MachineTemplate.Spec.InfrastructureRef

	template, err := r.metadata(ctx, seen, ref, tcp.Namespace)
	if err != nil {
		seen.missing = fmt.Sprintf("%s %s cannot be read (spec.machineTemplate.spec.infrastructureRef): %s", ref.Kind, ref.Name, err)

		return ctx.Err()
	}

	if template == nil {
		seen.missing = fmt.Sprintf("%s %s does not exist (spec.machineTemplate.spec.infrastructureRef)", ref.Kind, ref.Name)

		return nil
	}

	seen.template = template

	return nil
}

// ownTemplate has the template belong to the Cluster: a move takes it along then.
func (r *Reconciler) ownTemplate(ctx context.Context, seen *observation) error {
	template := seen.template
	if template == nil {
		return nil
	}

	owner := metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: clusterKind, Name: seen.cluster.Name, UID: seen.cluster.UID,
	}
	if util.HasExactOwnerRef(template.OwnerReferences, owner) {
		return nil
	}

	wanted := template.DeepCopy()
	wanted.OwnerReferences = util.EnsureOwnerRef(wanted.OwnerReferences, owner)

	err := r.Client.Patch(ctx, wanted, client.MergeFromWithOptions(template, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("%s %s: make the Cluster an owner: %w", template.Kind, template.Name, err)
	}

	return nil
}

// newInfrastructure is a machine's infrastructure machine to be made, from the template as it is now.
func (r *Reconciler) newInfrastructure(ctx context.Context, seen *observation, name string) (*unstructured.Unstructured, error) {
	tcp := seen.controlPlane
	ref := tcp.Spec.MachineTemplate.Spec.InfrastructureRef

	template, err := external.GetObjectFromContractVersionedRef(ctx, r.Client, ref, tcp.Namespace)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", ref.Kind, ref.Name, err)
	}

	owner := referenceTo(tcp)

	return external.GenerateTemplate(&external.GenerateTemplateInput{
		Template: template,
		TemplateRef: &corev1.ObjectReference{
			APIVersion: template.GetAPIVersion(), Kind: ref.Kind, Namespace: tcp.Namespace, Name: ref.Name,
		},
		Namespace: tcp.Namespace, Name: name, ClusterName: seen.clusterName, OwnerRef: &owner,
		Labels: labelsFor(tcp, seen.clusterName), Annotations: annotationsFor(tcp),
	})
}
