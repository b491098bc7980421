// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"time"

	machinerysecrets "github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/bootstrap/setup"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
	"github.com/maesh-dev/ichor/test/scale"
)

// bareLoop makes the writes and the renders that a manager makes for a machine, and nothing else: no cache, no watch, no queue, no
// event, and nothing to decide. What it writes is what the manager has written for a machine before.
type bareLoop struct {
	admin, writer client.Client
	status        bootstrapv1.TalosConfigStatus
	annotations   map[string]string
}

// newBareLoop learns from a fleet that a manager has made ready.
func newBareLoop(ctx context.Context, world *scale.World, namespace string) (*bareLoop, error) {
	config, err := world.UserConfig(scale.BareUser, "system:masters")
	if err != nil {
		return nil, err
	}

	loop := &bareLoop{admin: world.Admin}
	if loop.writer, err = client.New(config, client.Options{Scheme: setup.NewScheme()}); err != nil {
		return nil, err
	}

	key := client.ObjectKey{Namespace: namespace, Name: scale.MachineName(0)}

	example := &bootstrapv1.TalosConfig{}
	if err = world.Admin.Get(ctx, key, example); err != nil {
		return nil, err
	}

	secret := &corev1.Secret{}
	if err = world.Admin.Get(ctx, key, secret); err != nil {
		return nil, err
	}

	loop.status, loop.annotations = example.Status, secret.Annotations

	return loop, nil
}

// run makes a fleet ready, with as many requests under way as a manager has.
func (l *bareLoop) run(ctx context.Context, namespace string) (time.Duration, error) {
	input, err := l.input(ctx, namespace)
	if err != nil {
		return 0, err
	}

	configs, machines := &bootstrapv1.TalosConfigList{}, &clusterv1.MachineList{}
	if err = l.admin.List(ctx, configs, client.InNamespace(namespace)); err != nil {
		return 0, err
	}

	if err = l.admin.List(ctx, machines, client.InNamespace(namespace)); err != nil {
		return 0, err
	}

	byName := map[string]*clusterv1.Machine{}
	for i := range machines.Items {
		byName[machines.Items[i].Name] = &machines.Items[i]
	}

	start := time.Now()
	err = scale.Each(ctx, len(configs.Items), scale.Workers, func(ctx context.Context, i int) error {
		config := &configs.Items[i]

		return l.machine(ctx, input, config, byName[config.Name])
	})

	return time.Since(start), err
}

// input is what all machines of the fleet are rendered from.
func (l *bareLoop) input(ctx context.Context, namespace string) (machineconfig.Input, error) {
	in := machineconfig.Input{Cluster: &clusterv1.Cluster{}, ClusterConfig: &bootstrapv1.TalosClusterConfig{}}

	key := client.ObjectKey{Namespace: namespace, Name: "c"}
	if err := l.admin.Get(ctx, key, in.Cluster); err != nil {
		return in, err
	}

	if err := l.admin.Get(ctx, key, in.ClusterConfig); err != nil {
		return in, err
	}

	secret := &corev1.Secret{}
	if err := l.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: secrets.BundleName("c")}, secret); err != nil {
		return in, err
	}

	var err error
	if in.Bundle, in.Contract, err = secrets.FromSecret(secret, machinerysecrets.NewClock()); err != nil {
		return in, err
	}

	patches := &bootstrapv1.TalosConfigPatchList{}
	if err = l.admin.List(ctx, patches, client.InNamespace(namespace)); err != nil {
		return in, err
	}

	for i := range patches.Items {
		in.Patches = append(in.Patches, machineconfig.ParsePatch(&patches.Items[i]))
	}

	if in.Contract == (version.Contract{}) {
		return in, fmt.Errorf("namespace %s: no contract is pinned", namespace)
	}

	in.Credentials, err = machineconfig.ResolveCredentials(nil, nil)

	return in, err
}

// machine makes the three writes and the render for one machine.
func (l *bareLoop) machine(ctx context.Context, in machineconfig.Input, config *bootstrapv1.TalosConfig, machine *clusterv1.Machine) error {
	before := config.DeepCopy()
	conditions.Set(config, metav1.Condition{
		Type: clusterv1.PausedCondition, Status: metav1.ConditionFalse, Reason: clusterv1.NotPausedReason, ObservedGeneration: config.Generation,
	})

	if err := l.writer.Status().Patch(ctx, config, client.MergeFrom(before)); err != nil {
		return err
	}

	in.Machine, in.TalosConfig = machineconfig.NewMachine(machine), config

	rendered, err := machineconfig.Render(in)
	if err != nil {
		return err
	}

	annotations := maps.Clone(l.annotations)
	annotations[bootstrapv1.RenderedHashAnnotation] = rendered.Hash

	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: config.Namespace, Name: config.Name, Annotations: annotations,
			Labels: map[string]string{clusterv1.ClusterNameLabel: in.Cluster.Name},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: bootstrapv1.GroupVersion.String(), Kind: machineconfig.KindTalosConfig, Name: config.Name, UID: config.UID, Controller: new(true),
			}},
		},
		Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{"value": rendered.Bytes},
	}
	if err = l.writer.Create(ctx, secret); err != nil {
		return err
	}

	before = config.DeepCopy()
	l.status.DeepCopyInto(&config.Status)
	config.Status.RenderedHash, config.Status.DataSecretName = rendered.Hash, config.Name

	return l.writer.Status().Patch(ctx, config, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
