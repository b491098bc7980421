// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/storage"
)

// Fingerprint stands for one state of everything that goes into a machine's config. It is made of the caches alone and can be
// compared: as long as it is the same, a render gives the same bytes or the same fault.
type Fingerprint [sha256.Size]byte

// Version is one state of an object of the API server.
type Version struct {
	UID types.UID

	// Generation is that of an object with one: what counts of it is its spec.
	Generation int64 `json:",omitempty"`

	// ResourceVersion is that of an object without a generation.
	ResourceVersion string `json:",omitempty"`
}

// ContentVersion is the version of a Secret, of which any change counts. Nil is the version of one that does not exist.
func ContentVersion(secret *corev1.Secret) Version {
	if secret == nil {
		return Version{}
	}

	return Version{UID: secret.UID, ResourceVersion: secret.ResourceVersion}
}

func specVersion(object metav1.Object) Version {
	return Version{UID: object.GetUID(), Generation: object.GetGeneration()}
}

// facts are what a config is made of, in a form to be hashed.
type facts struct {
	Cluster       clusterFacts
	Machine       machineconfig.Machine
	TalosConfig   any
	ClusterConfig *Version       `json:",omitempty"`
	Storage       *Version       `json:",omitempty"`
	Patches       []Version      `json:",omitempty"`
	Objects       []objectFacts  `json:",omitempty"`
	Faults        []string       `json:",omitempty"`
	Secrets       map[string]any `json:",omitempty"`
}

// clusterFacts are what a render takes from the Cluster; its labels only select.
type clusterFacts struct {
	UID      types.UID
	Name     string
	Endpoint clusterv1.APIEndpoint
	Network  clusterv1.ClusterNetwork
}

// objectFacts is a Secret or ConfigMap that is referred to.
type objectFacts struct {
	Key     machineconfig.ObjectKey
	Version Version
}

// Fingerprint is that of the observed inputs and of the version of the cluster's bundle Secret, with the config contract that the
// machine is pinned to, if it is.
func (r *Reader) Fingerprint(ctx context.Context, seen Observed, bundle Version, pin string) (Fingerprint, error) {
	known, err := r.facts(ctx, seen)
	if err != nil {
		return Fingerprint{}, err
	}

	known.TalosConfig = specVersion(seen.TalosConfig)
	known.Secrets = map[string]any{"bundle": bundle, "pin": pin}

	return known.sum()
}

// facts are those of the observed inputs, without the TalosConfig's.
func (r *Reader) facts(ctx context.Context, seen Observed) (facts, error) {
	known := facts{
		Cluster: clusterFacts{seen.Cluster.UID, seen.Cluster.Name, seen.Cluster.Spec.ControlPlaneEndpoint, seen.Cluster.Spec.ClusterNetwork},
		Machine: seen.Machine,
	}

	if seen.fault != nil {
		known.Faults = append(known.Faults, seen.fault.Error())
	}

	in := seen.input()

	if governing, err := storage.Select(in.Cluster, in.Storages, in.Machine.Labels); err != nil {
		known.Faults = append(known.Faults, err.Error())
	} else if governing != nil {
		known.Storage = new(specVersion(governing))
	}

	patches, err := machineconfig.SelectPatches(in)
	if err != nil {
		known.Faults = append(known.Faults, err.Error())
	}

	for _, patch := range patches {
		known.Patches = append(known.Patches, specVersion(patch.Object()))
	}

	objects := machineconfig.ReferencedObjects(in)

	if config := seen.ClusterConfig; config != nil {
		known.ClusterConfig = new(specVersion(config))

		for _, name := range ReferencedSecrets(config) {
			objects = append(objects, machineconfig.ObjectKey{Kind: machineconfig.KindSecret, Name: name})
		}
	}

	for _, key := range objects {
		version, err := r.Version(ctx, seen.TalosConfig.Namespace, key)
		if err != nil {
			return known, err
		}

		known.Objects = append(known.Objects, objectFacts{key, version})
	}

	return known, nil
}

func (f facts) sum() (Fingerprint, error) {
	encoded, err := json.Marshal(f)
	if err != nil {
		return Fingerprint{}, fmt.Errorf("encode the inputs: %w", err)
	}

	return sha256.Sum256(encoded), nil
}

// Version is that of a Secret or ConfigMap, from the metadata cache; the zero value is that of one that does not exist.
func (r *Reader) Version(ctx context.Context, namespace string, key machineconfig.ObjectKey) (Version, error) {
	object, err := r.Metadata(ctx, namespace, key)
	if object == nil || err != nil {
		return Version{}, err
	}

	return Version{UID: object.UID, ResourceVersion: object.ResourceVersion}, nil
}

// Metadata is that of a Secret or ConfigMap, from its cache; nil means that it does not exist.
func (r *Reader) Metadata(ctx context.Context, namespace string, key machineconfig.ObjectKey) (*metav1.PartialObjectMetadata, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(key.Kind))

	if err := r.metadata.Get(ctx, client.ObjectKey{Namespace: namespace, Name: key.Name}, object); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil
		}

		return nil, fmt.Errorf("%s %s: metadata: %w", key.Kind, key.Name, err)
	}

	return object, nil
}
