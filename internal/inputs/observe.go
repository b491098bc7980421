// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig"
)

// Reader reads the inputs of machine configs. It may be used by many reconcilers at once.
type Reader struct {
	cache    client.Reader
	live     client.Reader
	metadata client.Reader
	patches  *patchCache
	looks    *looks
}

// NewReader returns a Reader. The cache has all kinds but Secrets and ConfigMaps that users write; of these, metadata knows that they
// exist and when they change, and live reads what they hold.
func NewReader(cache, live, metadata client.Reader) *Reader {
	return &Reader{cache: cache, live: live, metadata: metadata, patches: newPatchCache(), looks: newLooks()}
}

// Subject is the machine whose config is to be rendered.
type Subject struct {
	// TalosConfig of the machine.
	TalosConfig *bootstrapv1.TalosConfig

	// Cluster that the machine belongs to.
	Cluster *clusterv1.Cluster

	// Owner is the Machine or MachinePool that owns the TalosConfig.
	Owner metav1.Object

	// Machine is what a render needs of the Owner.
	Machine machineconfig.Machine
}

// Observed is what the caches say of a machine's inputs. What is in it must not be changed.
type Observed struct {
	Subject

	// ClusterConfig targets the Cluster. It is nil when none does, or more than one.
	ClusterConfig *bootstrapv1.TalosClusterConfig

	// Generations of the objects that may go in, by kind and name. Secrets and ConfigMaps have none.
	Generations map[machineconfig.ObjectKey]int64

	storages []bootstrapv1.TalosStorage
	patches  []*machineconfig.Patch

	// fault is what keeps the machine from being rendered, whatever is read live.
	fault error
}

// Observe asks the caches. An error is theirs; what a user must mend is in Err of the result.
func (r *Reader) Observe(ctx context.Context, subject Subject) (Observed, error) {
	all, err := r.settings(ctx, subject.TalosConfig.Namespace)
	if err != nil {
		return Observed{Subject: subject}, err
	}

	return all.of(subject), nil
}

// settings are what may go into the configs of a namespace's machines.
type settings struct {
	configs  []bootstrapv1.TalosClusterConfig
	storages []bootstrapv1.TalosStorage
	patches  []*machineconfig.Patch
}

func (r *Reader) settings(ctx context.Context, namespace string) (settings, error) {
	configs := &bootstrapv1.TalosClusterConfigList{}
	if err := r.cache.List(ctx, configs, client.InNamespace(namespace)); err != nil {
		return settings{}, fmt.Errorf("list TalosClusterConfigs: %w", err)
	}

	storages := &bootstrapv1.TalosStorageList{}
	if err := r.cache.List(ctx, storages, client.InNamespace(namespace)); err != nil {
		return settings{}, fmt.Errorf("list TalosStorages: %w", err)
	}

	patches, err := r.Patches(ctx, namespace)

	return settings{configs.Items, storages.Items, patches}, err
}

// of is what concerns one machine.
func (s settings) of(subject Subject) Observed {
	seen := Observed{Subject: subject, Generations: map[machineconfig.ObjectKey]int64{}, storages: s.storages, patches: s.patches}
	seen.add(machineconfig.KindTalosConfig, subject.TalosConfig)
	seen.add(machineconfig.KindCluster, subject.Cluster)
	seen.add(subject.Machine.Kind, subject.Owner)

	seen.ClusterConfig, seen.fault = machineconfig.SelectClusterConfig(subject.Cluster, s.configs)
	if seen.ClusterConfig != nil {
		seen.add(machineconfig.KindTalosClusterConfig, seen.ClusterConfig)
	}

	for i := range s.storages {
		seen.add(machineconfig.KindTalosStorage, &s.storages[i])
	}

	for _, patch := range s.patches {
		seen.add(machineconfig.KindTalosConfigPatch, patch.Object())
	}

	return seen
}

// Patches returns the TalosConfigPatches of a namespace ready to be merged.
func (r *Reader) Patches(ctx context.Context, namespace string) ([]*machineconfig.Patch, error) {
	list := &bootstrapv1.TalosConfigPatchList{}
	if err := r.cache.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list TalosConfigPatches: %w", err)
	}

	return r.patches.all(list), nil
}

// Err is the fault that keeps the machine from being rendered before anything is read live: more than one TalosClusterConfig,
// or one whose selector is invalid. It is nil when there is none.
func (o Observed) Err() error { return o.fault }

func (o Observed) add(kind string, object metav1.Object) {
	o.Generations[machineconfig.ObjectKey{Kind: kind, Name: object.GetName()}] = object.GetGeneration()
}

// input is what is known of the config's inputs without a live read.
func (o Observed) input() machineconfig.Input {
	return machineconfig.Input{
		Cluster:       o.Cluster,
		Machine:       o.Machine,
		TalosConfig:   o.TalosConfig,
		ClusterConfig: o.ClusterConfig,
		Storages:      o.storages,
		Patches:       o.patches,
	}
}
