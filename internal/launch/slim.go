// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/maesh-dev/ichor/internal/memory"
)

// Slimmer makes objects small before a cache keeps them, of the kinds of which there is one for each machine. It leaves out what nobody
// reads, gives back the room that decoding leaves behind lists, and lets objects share what is the same in many. What it is given belongs to
// nobody else yet, and may come through twice; what it has shared it never changes.
type Slimmer struct{ *memory.Shared }

// NewSlimmer returns a Slimmer that has seen nothing yet.
func NewSlimmer() Slimmer { return Slimmer{memory.NewShared()} }

// strippedValue stands for a value that the cache does not keep. It is not empty, so that an empty value is still seen to
// be one, and also when an object comes through here twice.
var strippedValue = []byte{'-'}

// strippedData are the values of most data Secrets.
var strippedData = map[string][]byte{"value": strippedValue}

// secret leaves the keys of a Secret, whether their values are empty and, of the values, only those that are wanted. The annotations that are
// named have the same value on many.
func (s Slimmer) secret(keep func(name string) bool, common []string) toolscache.TransformFunc {
	return func(in any) (any, error) {
		secret, ok := in.(*corev1.Secret)
		if !ok {
			return in, nil
		}

		s.Meta(&secret.ObjectMeta)
		secret.Annotations = s.keys(secret.Annotations, common)
		secret.Type = corev1.SecretType(s.Text(string(secret.Type)))

		if !keep(secret.Name) {
			secret.Data = strip(secret.Data)
		}

		return secret, nil
	}
}

// strip puts a sign in the place of each value that is not empty.
func strip(data map[string][]byte) map[string][]byte {
	if len(data) == len(strippedData) && len(data["value"]) > 0 {
		return strippedData
	}

	for key, value := range data {
		if len(value) > 0 {
			data[key] = strippedValue
		}
	}

	return data
}

// Metadata leaves what a watch needs to tell which object changed, whether the manager's cache has it too, and whether a move
// takes it along, and the annotations that are named.
func (s Slimmer) Metadata(annotations ...string) toolscache.TransformFunc {
	return func(in any) (any, error) {
		object, ok := in.(*metav1.PartialObjectMetadata)
		if !ok {
			return in, nil
		}

		object.ObjectMeta = metav1.ObjectMeta{
			Name: object.Name, Namespace: s.Text(object.Namespace), UID: object.UID, ResourceVersion: object.ResourceVersion,
			Labels:      s.Only(object.Labels, clusterv1.ClusterNameLabel, clusterctlv1.ClusterctlMoveLabel),
			Annotations: s.Only(object.Annotations, annotations...),
		}
		object.TypeMeta = metav1.TypeMeta{Kind: s.Text(object.Kind), APIVersion: s.Text(object.APIVersion)}

		return object, nil
	}
}

// Meta leaves out the bookkeeping of who has written what, and the copy of the whole object, values included, that kubectl apply leaves.
func (s Slimmer) Meta(meta *metav1.ObjectMeta) {
	meta.ManagedFields = nil
	meta.Namespace = s.Text(meta.Namespace)
	meta.GenerateName = s.Text(meta.GenerateName)
	meta.Labels = s.Map(meta.Labels)

	// Only if it is there: a map that is shared is never written to, and deletion of nothing is a write.
	if _, ok := meta.Annotations[corev1.LastAppliedConfigAnnotation]; ok { //nolint:staticcheck // See above.
		delete(meta.Annotations, corev1.LastAppliedConfigAnnotation)
	}

	meta.OwnerReferences = slices.Clone(meta.OwnerReferences)
	for i := range meta.OwnerReferences {
		owner := &meta.OwnerReferences[i]
		owner.APIVersion, owner.Kind = s.Text(owner.APIVersion), s.Text(owner.Kind)
		owner.Name = Same(owner.Name, meta.Name)
	}

	for i := range meta.Finalizers {
		meta.Finalizers[i] = s.Text(meta.Finalizers[i])
	}
}

// keys shares the keys of a map whose values are an object's own, but for those of the common keys.
func (s Slimmer) keys(values map[string]string, common []string) map[string]string {
	if values == nil {
		return nil
	}

	shared := make(map[string]string, len(values))
	for key, value := range values {
		if slices.Contains(common, key) {
			value = s.Text(value)
		}

		shared[s.Text(key)] = value
	}

	return shared
}

// Only is a shared map of those of the values that are there, or nil.
func (s Slimmer) Only(values map[string]string, keys ...string) map[string]string {
	var kept map[string]string

	for _, key := range keys {
		if value, ok := values[key]; ok {
			if kept == nil {
				kept = map[string]string{}
			}

			kept[key] = value
		}
	}

	return s.Map(kept)
}

// Same is the text, in the memory of the other if they are equal: what belongs to a machine often has its name.
func Same(text, other string) string {
	if text == other {
		return other
	}

	return text
}
