// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
)

// storeScheme has the kinds of a management cluster, and no others: a fake client is made for each look of a cache.
var storeScheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()

	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme, controlplanev1.AddToScheme, infrav1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}

	return scheme
})

// storeMapper knows their resources.
var storeMapper = sync.OnceValue(func() meta.RESTMapper { return testrestmapper.TestOnlyStaticRESTMapper(storeScheme()) })

func newFake() *fake.ClientBuilder {
	return fake.NewClientBuilder().WithScheme(storeScheme()).WithRESTMapper(storeMapper()).WithStatusSubresource(withStatus()...)
}

// storedKinds are lists of every kind that a store has objects of.
func storedKinds() []client.ObjectList {
	return []client.ObjectList{
		&apiextensionsv1.CustomResourceDefinitionList{}, &clusterv1.ClusterList{}, &controlplanev1.TalosControlPlaneList{}, &clusterv1.MachineList{},
		&bootstrapv1.TalosClusterConfigList{}, &bootstrapv1.TalosConfigList{}, &corev1.SecretList{}, &infrav1.SimMachineTemplateList{}, &infrav1.SimMachineList{},
	}
}

// withStatus are the kinds that have the status subresource.
func withStatus() []client.Object {
	return []client.Object{&clusterv1.Cluster{}, &controlplanev1.TalosControlPlane{}, &clusterv1.Machine{}, &bootstrapv1.TalosConfig{}, &infrav1.SimMachine{}}
}

// store is what a management cluster stores: controller-runtime's fake of an API server, with what that lacks and counts here. Every object has
// a UID that no other has, in any store, and the time at which it was made; a UID that is asked for is heeded.
type store struct {
	client.WithWatch

	clock clock.PassiveClock
	uids  *int

	// writes counts, so that who has seen the last need not look again.
	writes int
}

func newStore(now clock.PassiveClock, uids *int) *store {
	s := &store{clock: now, uids: uids}
	s.WithWatch = interceptor.NewClient(
		newFake().WithTypeConverters(managedfields.NewDeducedTypeConverter()).Build(),
		interceptor.Funcs{
			Create: s.create, Apply: s.apply, Delete: s.remove,
			Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
				s.writes++

				return c.Update(ctx, object, options...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				s.writes++

				return c.Patch(ctx, object, patch, options...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, resource string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
				s.writes++

				return c.SubResource(resource).Patch(ctx, object, patch, options...)
			},
		},
	)

	return s
}

func (s *store) born(object client.Object) {
	*s.uids++
	object.SetUID(types.UID(fmt.Sprintf("uid-%d", *s.uids)))
	object.SetCreationTimestamp(metav1.NewTime(s.clock.Now().Truncate(time.Second)))
}

func (s *store) create(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
	s.writes++
	s.born(object)

	return c.Create(ctx, object, options...)
}

// apply is a server-side apply. What is applied says the UID only to mean that very object.
func (s *store) apply(ctx context.Context, c client.WithWatch, applied runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	s.writes++

	object, ok := applied.(client.Object)
	if !ok {
		return fmt.Errorf("apply %T: it is no object", applied)
	}

	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())

	err := c.Get(ctx, client.ObjectKeyFromObject(object), found)
	if client.IgnoreNotFound(err) != nil {
		return err
	}

	if meant := object.GetUID(); meant != "" && meant != found.GetUID() {
		return apierrors.NewConflict(schema.GroupResource{}, object.GetName(), fmt.Errorf("uid %s is meant, and it has %q", meant, found.GetUID()))
	}

	object.SetUID("")

	// The fake would remove an object that is being deleted. An API server merges into it; for what is looked at here it is the same to leave it.
	if !found.GetDeletionTimestamp().IsZero() {
		object.SetUID(found.GetUID())
		object.SetResourceVersion(found.GetResourceVersion())

		return nil
	}

	if applyErr := c.Apply(ctx, applied, options...); applyErr != nil || err == nil {
		return applyErr
	}

	made := &unstructured.Unstructured{}
	made.SetGroupVersionKind(found.GroupVersionKind())

	if err := c.Get(ctx, client.ObjectKeyFromObject(object), made); err != nil {
		return err
	}

	s.born(made)

	if err := c.Update(ctx, made); err != nil {
		return err
	}

	object.SetUID(made.GetUID())
	object.SetCreationTimestamp(made.GetCreationTimestamp())
	object.SetResourceVersion(made.GetResourceVersion())

	return nil
}

func (s *store) remove(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
	s.writes++

	asked := (&client.DeleteOptions{}).ApplyOptions(options)

	if asked.Preconditions != nil && asked.Preconditions.UID != nil {
		found := &metav1.PartialObjectMetadata{}

		kind, err := s.GroupVersionKindFor(object)
		if err != nil {
			return err
		}

		found.SetGroupVersionKind(kind)

		if err := c.Get(ctx, client.ObjectKeyFromObject(object), found); err != nil {
			return err
		}

		if *asked.Preconditions.UID != found.UID {
			return apierrors.NewConflict(schema.GroupResource{}, object.GetName(), fmt.Errorf("uid %s is meant, and it has %s", *asked.Preconditions.UID, found.UID))
		}
	}

	return c.Delete(ctx, object, options...)
}

// objects are copies of everything that is stored.
func (s *store) objects(ctx context.Context) ([]client.Object, error) {
	var all []client.Object

	for _, list := range storedKinds() {
		if err := s.List(ctx, list); err != nil {
			return nil, err
		}

		items, err := meta.ExtractList(list)
		if err != nil {
			return nil, err
		}

		for _, item := range items {
			object, ok := item.(client.Object)
			if !ok {
				return nil, fmt.Errorf("%T is no object", item)
			}

			all = append(all, object)
		}
	}

	return all, nil
}

// seenAt is what a cache has that has seen these objects and nothing since. They have been read from a store.
func seenAt(objects []client.Object) client.WithWatch {
	// The builder takes what it is given for its own.
	copies := make([]client.Object, len(objects))
	for i, object := range objects {
		copies[i], _ = object.DeepCopyObject().(client.Object)
	}

	// Nothing is written there, so nobody's fields are of interest.
	tracker := clienttesting.NewObjectTracker(storeScheme(), serializer.NewCodecFactory(storeScheme()).UniversalDecoder())

	return newFake().WithObjectTracker(tracker).WithObjects(copies...).Build()
}

// restore makes objects anew in another store, as `clusterctl move` does, or who restores a backup: under new UIDs, with the owners that they
// had by the UIDs that those have now, and without status.
func (s *store) restore(ctx context.Context, objects []client.Object) error {
	uids := map[types.UID]types.UID{}
	owners := map[client.Object][]metav1.OwnerReference{}

	for _, object := range objects {
		before := object.GetUID()

		bare, err := withoutStatus(s.Scheme(), object)
		if err != nil {
			return err
		}

		owners[bare] = object.GetOwnerReferences()

		if err := s.Create(ctx, bare); err != nil {
			return err
		}

		uids[before] = bare.GetUID()
	}

	for object, references := range owners {
		known := slices.DeleteFunc(slices.Clone(references), func(ref metav1.OwnerReference) bool { return uids[ref.UID] == "" })
		for i := range known {
			known[i].UID = uids[known[i].UID]
		}

		object.SetOwnerReferences(known)

		if err := s.Update(ctx, object); err != nil {
			return err
		}
	}

	return nil
}

// withoutStatus is an object as a backup has it.
func withoutStatus(scheme *runtime.Scheme, object client.Object) (client.Object, error) {
	content, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}

	bare := map[string]any{}
	if err := json.Unmarshal(content, &bare); err != nil {
		return nil, err
	}

	delete(bare, "status")

	kinds, _, err := scheme.ObjectKinds(object)
	if err != nil {
		return nil, err
	}

	out, err := scheme.New(kinds[0])
	if err != nil {
		return nil, err
	}

	copied, ok := out.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is no object", out)
	}

	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(bare, copied); err != nil {
		return nil, err
	}

	copied.SetUID("")
	copied.SetResourceVersion("")
	copied.SetOwnerReferences(nil)
	copied.SetDeletionTimestamp(nil)

	return copied, nil
}
