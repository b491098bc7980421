// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	machinerysecrets "github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
)

const (
	kubernetesVersion = "v1.36.1"
	talosVersion      = "v1.14.1"
	configContract    = "v1.14"
)

// patches are what an ordinary cluster has.
var patches = []string{
	"{kind: SysctlConfig, sysctlConfig: {params: {vm.max_map_count: '262144', net.core.somaxconn: '65535'}}}",
	"{kind: TimeSyncConfig, timeSyncConfig: {ntp: {servers: [ntp1.example.com, ntp2.example.com]}}}",
	"{kind: UserVolumeConfig, userVolumeConfig: {name: data, provisioning: {diskSelector: {match: 'disk.transport == \"nvme\"'}, minSize: 10GiB, maxSize: 50%}}}",
	"{kind: KubeNodeConfig, kubeNodeConfig: {labels: {example.com/rack: r1}, annotations: {example.com/owner: storage}}}",
	"{kind: RegistryMirrorConfig, registryMirrorConfig: {name: ghcr.io, endpoints: [{url: 'https://mirror.example.com/v2/ghcr.io', overridePath: true}]}}",
}

// Fleet is one cluster in a namespace of its own, and what its machines are rendered from.
type Fleet struct {
	Namespace     string
	Cluster       *clusterv1.Cluster
	ClusterConfig *bootstrapv1.TalosClusterConfig
	Patches       []*bootstrapv1.TalosConfigPatch
	Bundle        *secrets.Bundle
}

// sharedBundle is the secrets of all fleets that have some from the start: making them is measured nowhere.
var sharedBundle = sync.OnceValues(func() (*secrets.Bundle, error) {
	contract, err := version.ParseContract(configContract)
	if err != nil {
		return nil, err
	}

	return secrets.New(machinerysecrets.NewClock(), contract, secrets.WithECDSAServiceAccountKey())
})

// NewFleet creates a cluster whose infrastructure is there, with everything that its machines are rendered from: its settings, five
// patches and its secrets.
func (w *World) NewFleet(ctx context.Context, namespace string) (*Fleet, error) {
	bundle, err := sharedBundle()
	if err != nil {
		return nil, err
	}

	f := &Fleet{Namespace: namespace, Bundle: bundle}
	if err = w.Admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return nil, err
	}

	if f.Cluster, err = w.NewCluster(ctx, namespace, "c"); err != nil {
		return nil, err
	}

	f.ClusterConfig = ClusterConfig(namespace, f.Cluster.Name)
	if err = w.Admin.Create(ctx, f.ClusterConfig); err != nil {
		return nil, err
	}

	for i, document := range patches {
		patch := &bootstrapv1.TalosConfigPatch{}
		text := fmt.Sprintf("{metadata: {name: p%d, namespace: %s}, spec: {layer: Cluster, clusterName: %s, documents: [%s]}}",
			i, namespace, f.Cluster.Name, document)

		if err = yaml.UnmarshalStrict([]byte(text), patch); err != nil {
			return nil, fmt.Errorf("patch %d: %w", i, err)
		}

		if err = w.Admin.Create(ctx, patch); err != nil {
			return nil, err
		}

		f.Patches = append(f.Patches, patch)
	}

	contract, err := version.ParseContract(configContract)
	if err != nil {
		return nil, err
	}

	secret, err := secrets.BundleSecret(f.Cluster, bundle, contract)
	if err != nil {
		return nil, err
	}

	return f, w.Admin.Create(ctx, secret)
}

// NewCluster creates a Cluster whose infrastructure is there.
func (w *World) NewCluster(ctx context.Context, namespace, name string) (*clusterv1.Cluster, error) {
	cluster := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: clusterv1.ClusterSpec{
			ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: name + ".example.com", Port: 6443},
			InfrastructureRef:    infrastructure("GenericInfrastructureCluster", name),
			ClusterNetwork: clusterv1.ClusterNetwork{
				Pods:     clusterv1.NetworkRanges{CIDRBlocks: []string{"10.244.0.0/16"}},
				Services: clusterv1.NetworkRanges{CIDRBlocks: []string{"10.96.0.0/12"}},
			},
		},
	}
	if err := w.Admin.Create(ctx, cluster); err != nil {
		return nil, err
	}

	cluster.Status.Initialization.InfrastructureProvisioned = new(true)

	return cluster, w.Admin.Status().Update(ctx, cluster)
}

// ClusterConfig says which Talos the machines of a cluster boot.
func ClusterConfig(namespace, cluster string) *bootstrapv1.TalosClusterConfig {
	config := &bootstrapv1.TalosClusterConfig{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster}}
	config.Spec.ClusterName = cluster
	config.Spec.Talos.Version = talosVersion

	return config
}

// MachineName is that of a fleet's machine.
func MachineName(i int) string { return "m-" + strconv.Itoa(100_000 + i)[1:] }

// AddMachines creates Machines with their TalosConfigs, which are theirs from the start, as Cluster API leaves them. A manager
// that has them in its cache has nothing to wait for.
func (w *World) AddMachines(ctx context.Context, f *Fleet, n int) error {
	return Each(ctx, n, Workers, func(ctx context.Context, i int) error {
		return w.AddMachine(ctx, f.Namespace, f.Cluster.Name, MachineName(i), false)
	})
}

// AddMachine creates a Machine and its TalosConfig.
func (w *World) AddMachine(ctx context.Context, namespace, cluster, name string, controlPlane bool) error {
	labels := map[string]string{
		clusterv1.ClusterNameLabel:           cluster,
		clusterv1.MachineDeploymentNameLabel: cluster + "-md-0",
		clusterv1.MachineSetNameLabel:        cluster + "-md-0-7xk2p",
		"machine-template-hash":              "2715834721-7xk2p",
	}
	if controlPlane {
		labels[clusterv1.MachineControlPlaneLabel] = ""
	}

	machine := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: clusterv1.MachineSpec{
			ClusterName:       cluster,
			Version:           kubernetesVersion,
			InfrastructureRef: infrastructure("GenericInfrastructureMachine", name),
			Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: bootstrapv1.GroupVersion.Group, Kind: "TalosConfig", Name: name,
			}},
		},
	}

	if err := w.Admin.Create(ctx, machine); err != nil {
		return err
	}

	config := &bootstrapv1.TalosConfig{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: labels,
			Annotations: map[string]string{
				clusterv1.TemplateClonedFromNameAnnotation:      cluster + "-md-0",
				clusterv1.TemplateClonedFromGroupKindAnnotation: "TalosConfigTemplate." + bootstrapv1.GroupVersion.Group,
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: machine.Name, UID: machine.UID,
				Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: bootstrapv1.TalosConfigSpec{Hostname: bootstrapv1.HostnameSpec{Source: bootstrapv1.HostnameSourceMachineName}},
	}

	return w.Admin.Create(ctx, config)
}

func infrastructure(kind, name string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: kind, Name: name}
}
