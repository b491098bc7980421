// SPDX-License-Identifier: Apache-2.0

package clustersecrets

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// Keeper makes and keeps the Secrets of clusters. All reconcilers of a manager share one.
type Keeper struct {
	// Made is called for each bundle that was created here, to count them. It may be nil.
	Made func()

	client   client.Client
	live     client.Reader
	versions *inputs.Reader
	recorder events.EventRecorder
	clock    clock.PassiveClock
	options  []secrets.Option

	bundles *bundleCache
	proofs  *proofCache
	states  *stateCache

	// making lets the workers that need the same thing made wait for one of them.
	making singleflight.Group

	// copying is held while a user's bundle is made a cluster's.
	copying sync.Mutex
}

// New returns a Keeper. The client reads Secrets with the cluster-name label from a cache, values of a cluster's own included; live reads
// what the cache lacks; metadata knows of every Secret that it exists and when it changes, from a cache without values. The clock gives the
// time for certificates, and the options change how bundles are made.
func New(cached client.Client, live, metadata client.Reader, recorder events.EventRecorder, clock clock.PassiveClock, options ...secrets.Option,
) *Keeper {
	return &Keeper{
		client: cached, live: live, versions: inputs.NewReader(cached, live, metadata), recorder: recorder, clock: clock, options: options,
		bundles: newBundleCache(), proofs: newProofCache(), states: newStateCache(),
	}
}

// FaultError is what a user must mend about a cluster's secrets. It names Secret and key, and no value.
type FaultError struct {
	// Reason is one of the SecretsBundleAvailable condition.
	Reason string

	// Again says that nothing which is watched tells when it is mended, so that it has to be tried again.
	Again bool

	// Leftover says that a Secret of an earlier Cluster of the name is in the way. That ends when a machine of this one carries its content.
	Leftover bool

	Err error
}

func (f *FaultError) Error() string { return f.Err.Error() }

func (f *FaultError) Unwrap() error { return f.Err }

func invalid(err error) error {
	return &FaultError{Reason: bootstrapv1.SecretsBundleInvalidReason, Err: err}
}

func mismatch(err error) error {
	return &FaultError{Reason: bootstrapv1.SecretsBundleMismatchReason, Err: err}
}

// find returns a Secret, nil when there is none. The cache lacks one without the label, which is read live. What no cache has seen yet is
// met when it is created again.
func (k *Keeper) find(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	secret, err := k.cached(ctx, key)
	if secret != nil || err != nil {
		return secret, err
	}

	version, err := k.version(ctx, key)
	if version == (inputs.Version{}) || err != nil {
		return nil, err
	}

	return k.read(ctx, key)
}

// version is that of a Secret, whatever its labels, from the cache of metadata; it is zero when there is none.
func (k *Keeper) version(ctx context.Context, key client.ObjectKey) (inputs.Version, error) {
	return k.versions.Version(ctx, key.Namespace, machineconfig.ObjectKey{Kind: machineconfig.KindSecret, Name: key.Name})
}

// cached reads from the cache; nil means that the cache has none.
func (k *Keeper) cached(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	return get(ctx, k.client, key)
}

// read reads live; nil means that there is none.
func (k *Keeper) read(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	return get(ctx, k.live, key)
}

func get(ctx context.Context, from client.Reader, key client.ObjectKey) (*corev1.Secret, error) {
	secret := &corev1.Secret{}

	err := from.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}

	if err != nil {
		return nil, &secrets.ReadError{Object: "Secret " + key.Name, Err: err}
	}

	return secret, nil
}

// create creates a Secret, or returns the one of its name that is there already. What the API server refuses, by a quota or an admission
// policy, is a fault that the user may be able to mend.
func (k *Keeper) create(ctx context.Context, secret *corev1.Secret) (existing *corev1.Secret, err error) {
	err = k.client.Create(ctx, secret)

	if apierrors.IsAlreadyExists(err) {
		existing, err := k.read(ctx, client.ObjectKeyFromObject(secret))
		if existing == nil && err == nil {
			err = fmt.Errorf("secret %s: it was deleted right after it had been created", secret.Name)
		}

		return existing, err
	}

	if err != nil {
		err = CreateFault(ctx, k.client, secret, err)
	}

	return nil, told(secret, "create", err)
}

func keyOf(cluster *clusterv1.Cluster, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: cluster.Namespace, Name: name}
}
