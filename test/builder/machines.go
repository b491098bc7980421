// SPDX-License-Identifier: Apache-2.0

package builder

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
)

// MachineBuilder builds a Machine that is made by hand, its TalosConfig and its infrastructure, all of one name.
type MachineBuilder struct {
	machine        *clusterv1.Machine
	config         *bootstrapv1.TalosConfig
	infrastructure Infrastructure
}

// Machine is a worker of a Cluster, on a simulated machine.
func Machine(cluster, name string) *MachineBuilder {
	return &MachineBuilder{
		machine: &clusterv1.Machine{
			TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine"},
			ObjectMeta: named(name, cluster),
			Spec: clusterv1.MachineSpec{
				ClusterName: cluster, Version: KubernetesVersion, Bootstrap: bootstrapRef("TalosConfig", name),
			},
		},
		config: &bootstrapv1.TalosConfig{
			TypeMeta:   metav1.TypeMeta{APIVersion: bootstrapv1.GroupVersion.String(), Kind: "TalosConfig"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       configSpec(),
		},
		infrastructure: Sim{},
	}
}

// ControlPlaneMachine is a control-plane machine of a Cluster without a control-plane provider.
func ControlPlaneMachine(cluster, name string) *MachineBuilder {
	return Machine(cluster, name).Label(clusterv1.MachineControlPlaneLabel, "")
}

// On is the infrastructure.
func (b *MachineBuilder) On(infrastructure Infrastructure) *MachineBuilder {
	b.infrastructure = infrastructure

	return b
}

// Sim has the Machine run on a simulated machine of this kind.
func (b *MachineBuilder) Sim(spec infrav1.SimMachineSpec) *MachineBuilder {
	return b.On(Sim{MachineSpec: spec})
}

// Label sets a label of the Machine.
func (b *MachineBuilder) Label(key, value string) *MachineBuilder {
	metav1.SetMetaDataLabel(&b.machine.ObjectMeta, key, value)

	return b
}

// With changes the Machine as built so far.
func (b *MachineBuilder) With(change func(*clusterv1.Machine)) *MachineBuilder {
	change(b.machine)

	return b
}

// Config changes the TalosConfig as built so far.
func (b *MachineBuilder) Config(change func(*bootstrapv1.TalosConfigSpec)) *MachineBuilder {
	change(&b.config.Spec)

	return b
}

// Data has the Machine boot from a Secret that somebody else has made, without a TalosConfig.
func (b *MachineBuilder) Data(secret string) *MachineBuilder {
	b.config = nil
	b.machine.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: &secret}

	return b
}

// Objects are the infrastructure, the TalosConfig and the Machine.
func (b *MachineBuilder) Objects() []client.Object {
	infrastructure := b.infrastructure.Machine(b.machine.Name)
	objects := []client.Object{infrastructure}

	if b.config != nil {
		objects = append(objects, b.config.DeepCopy())
	}

	machine := b.machine.DeepCopy()
	machine.Spec.InfrastructureRef = referenceTo(infrastructure)

	return append(objects, machine)
}

// WorkersBuilder builds a MachineDeployment and the templates of its machines, all of one name.
type WorkersBuilder struct {
	deployment     *clusterv1.MachineDeployment
	template       *bootstrapv1.TalosConfigTemplate
	infrastructure Infrastructure
}

// Workers is a MachineDeployment of simulated machines.
func Workers(cluster, name string, replicas int32) *WorkersBuilder {
	return &WorkersBuilder{
		deployment: &clusterv1.MachineDeployment{
			TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineDeployment"},
			ObjectMeta: named(name, cluster),
			Spec: clusterv1.MachineDeploymentSpec{
				ClusterName: cluster, Replicas: &replicas,
				Template: clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{
					ClusterName: cluster, Version: KubernetesVersion, Bootstrap: bootstrapRef("TalosConfigTemplate", name),
				}},
			},
		},
		template: &bootstrapv1.TalosConfigTemplate{
			TypeMeta:   metav1.TypeMeta{APIVersion: bootstrapv1.GroupVersion.String(), Kind: "TalosConfigTemplate"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       bootstrapv1.TalosConfigTemplateSpec{Template: bootstrapv1.TalosConfigTemplateResource{Spec: configSpec()}},
		},
		infrastructure: Sim{},
	}
}

// On is the infrastructure.
func (b *WorkersBuilder) On(infrastructure Infrastructure) *WorkersBuilder {
	b.infrastructure = infrastructure

	return b
}

// Label sets a label of the Machines, which patches may select.
func (b *WorkersBuilder) Label(key, value string) *WorkersBuilder {
	if b.deployment.Spec.Template.Labels == nil {
		b.deployment.Spec.Template.Labels = map[string]string{}
	}

	b.deployment.Spec.Template.Labels[key] = value

	return b
}

// With changes the MachineDeployment as built so far.
func (b *WorkersBuilder) With(change func(*clusterv1.MachineDeployment)) *WorkersBuilder {
	change(b.deployment)

	return b
}

// Config changes the spec of the TalosConfigs as built so far.
func (b *WorkersBuilder) Config(change func(*bootstrapv1.TalosConfigSpec)) *WorkersBuilder {
	change(&b.template.Spec.Template.Spec)

	return b
}

// Objects are the templates and the MachineDeployment.
func (b *WorkersBuilder) Objects() []client.Object {
	infrastructure := b.infrastructure.Template(b.deployment.Name)

	deployment := b.deployment.DeepCopy()
	deployment.Spec.Template.Spec.InfrastructureRef = referenceTo(infrastructure)

	return []client.Object{infrastructure, b.template.DeepCopy(), deployment}
}

// PoolInfrastructure is a provider's that has machine pools.
type PoolInfrastructure interface {
	Pool(name string) client.Object
}

// PoolBuilder builds a MachinePool, its TalosConfig and its infrastructure, all of one name.
type PoolBuilder struct {
	pool           *clusterv1.MachinePool
	config         *bootstrapv1.TalosConfig
	infrastructure PoolInfrastructure
}

// Pool is a MachinePool of simulated machines.
func Pool(cluster, name string, replicas int32) *PoolBuilder {
	return &PoolBuilder{
		pool: &clusterv1.MachinePool{
			TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachinePool"},
			ObjectMeta: named(name, cluster),
			Spec: clusterv1.MachinePoolSpec{
				ClusterName: cluster, Replicas: &replicas,
				Template: clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{
					ClusterName: cluster, Version: KubernetesVersion, Bootstrap: bootstrapRef("TalosConfig", name),
				}},
			},
		},
		config: &bootstrapv1.TalosConfig{
			TypeMeta:   metav1.TypeMeta{APIVersion: bootstrapv1.GroupVersion.String(), Kind: "TalosConfig"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
		},
		infrastructure: Sim{},
	}
}

// On is the infrastructure.
func (b *PoolBuilder) On(infrastructure PoolInfrastructure) *PoolBuilder {
	b.infrastructure = infrastructure

	return b
}

// Sim has the pool be of simulated machines of this kind.
func (b *PoolBuilder) Sim(spec infrav1.SimMachineSpec) *PoolBuilder {
	return b.On(Sim{MachineSpec: spec})
}

// Label sets a label of the machines, which patches may select.
func (b *PoolBuilder) Label(key, value string) *PoolBuilder {
	if b.pool.Spec.Template.Labels == nil {
		b.pool.Spec.Template.Labels = map[string]string{}
	}

	b.pool.Spec.Template.Labels[key] = value

	return b
}

// Config changes the TalosConfig as built so far.
func (b *PoolBuilder) Config(change func(*bootstrapv1.TalosConfigSpec)) *PoolBuilder {
	change(&b.config.Spec)

	return b
}

// Objects are the infrastructure, the TalosConfig and the MachinePool.
func (b *PoolBuilder) Objects() []client.Object {
	infrastructure := b.infrastructure.Pool(b.pool.Name)

	pool := b.pool.DeepCopy()
	pool.Spec.Template.Spec.InfrastructureRef = referenceTo(infrastructure)

	return []client.Object{infrastructure, b.config.DeepCopy(), pool}
}
