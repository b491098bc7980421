// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// Live reads Secrets and ConfigMaps of one namespace, each at most once: all that is rendered with one Live sees one state of them. It is
// for one reconcile, and must not be kept: no cache holds the values of Secrets that are not Ichor's.
type Live struct {
	reader    client.Reader
	namespace string
	seen      map[machineconfig.ObjectKey]found
}

// found is what a read has found. It is false for what does not exist. A read that has failed is not tried again for each machine.
type found struct {
	object machineconfig.Object
	exists bool
	err    error
}

// Live returns a new Live.
func (r *Reader) Live(namespace string) *Live {
	return &Live{reader: r.live, namespace: namespace, seen: map[machineconfig.ObjectKey]found{}}
}

// Resolve reads what the machine's inputs refer to and returns the input of a render, for the caller to add the secrets bundle and the
// contract to. A missing Secret or key of the TalosClusterConfig is a machineconfig.Error; that of a patch is the render's to report.
func (l *Live) Resolve(ctx context.Context, seen Observed) (machineconfig.Input, error) {
	in := seen.input()

	var err error
	if in.Credentials, err = l.Credentials(ctx, seen.ClusterConfig); err != nil {
		return in, err
	}

	objects := map[machineconfig.ObjectKey]machineconfig.Object{}

	for _, key := range machineconfig.ReferencedObjects(in) {
		if err := l.read(ctx, key, objects); err != nil {
			return in, err
		}
	}

	in.References = machineconfig.NewReferences(objects)

	return in, nil
}

// Credentials reads the Secrets that the TalosClusterConfig, which may be nil, refers to.
func (l *Live) Credentials(ctx context.Context, config *bootstrapv1.TalosClusterConfig) (machineconfig.Credentials, error) {
	objects := map[machineconfig.ObjectKey]machineconfig.Object{}

	for _, name := range machineconfig.SecretNames(config) {
		if err := l.read(ctx, machineconfig.ObjectKey{Kind: machineconfig.KindSecret, Name: name}, objects); err != nil {
			return machineconfig.Credentials{}, err
		}
	}

	values := make(map[string]machineconfig.Object, len(objects))
	for key, object := range objects {
		values[key.Name] = object
	}

	return machineconfig.ResolveCredentials(config, values)
}

// read puts what the object holds among the objects, unless it does not exist.
func (l *Live) read(ctx context.Context, key machineconfig.ObjectKey, objects map[machineconfig.ObjectKey]machineconfig.Object) error {
	known, ok := l.seen[key]
	if !ok {
		object, err := l.get(ctx, key)
		known = found{object: object, exists: err == nil}

		if client.IgnoreNotFound(err) != nil {
			known.err = &secrets.ReadError{Object: key.Kind + " " + key.Name, Err: err}
		}

		l.seen[key] = known
	}

	if known.exists {
		objects[key] = known.object
	}

	return known.err
}

// get gets what a Secret or ConfigMap holds.
func (l *Live) get(ctx context.Context, object machineconfig.ObjectKey) (machineconfig.Object, error) {
	key := client.ObjectKey{Namespace: l.namespace, Name: object.Name}

	if object.Kind == machineconfig.KindSecret {
		secret := &corev1.Secret{}
		err := l.reader.Get(ctx, key, secret)

		return machineconfig.SecretObject(secret), err
	}

	configMap := &corev1.ConfigMap{}
	err := l.reader.Get(ctx, key, configMap)

	return machineconfig.ConfigMapObject(configMap), err
}
