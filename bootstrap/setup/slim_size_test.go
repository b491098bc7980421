// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/launch"
)

// TestCachedBytes bounds what the cache keeps for each machine, which does not depend on the machine that the test runs on. All of it
// times 10,000 is what makes a manager's memory grow.
func TestCachedBytes(t *testing.T) {
	slim := slimmer{launch.NewSlimmer()}

	tests := map[string]struct {
		decode func(i int) any
		slim   func(any) (any, error)
		most   uint64
	}{
		"Machine":     {func(i int) any { return decoded[clusterv1.Machine](t, exampleMachine(i)) }, slim.machine, 1100},
		"TalosConfig": {func(i int) any { return decoded[bootstrapv1.TalosConfig](t, exampleConfig(i)) }, slim.talosConfig, 2050},
		"data Secret": {func(i int) any { return decoded[corev1.Secret](t, exampleSecret(i)) }, dataSecrets().Transform, 1150},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			const n = 2000

			kept := make([]any, n)
			before := heap()

			for i := range kept {
				var err error
				if kept[i], err = test.slim(test.decode(i)); err != nil {
					t.Fatal(err)
				}
			}

			each := (heap() - before) / n
			runtime.KeepAlive(kept)
			t.Logf("%d bytes each", each)

			if each > test.most {
				t.Errorf("the cache keeps %d bytes of each, at most %d are allowed", each, test.most)
			}
		})
	}
}

func heap() uint64 {
	var stats runtime.MemStats

	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)

	return stats.HeapAlloc
}

// decoded is the object as it comes from the API server.
func decoded[T any](t *testing.T, object any) *T {
	t.Helper()

	encoded, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}

	into := new(T)
	if err := json.Unmarshal(encoded, into); err != nil {
		t.Fatal(err)
	}

	return into
}

func exampleMeta(i int) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "production", Name: fmt.Sprintf("cluster-1-workers-7xk2p-%05d", i), UID: types.UID(fmt.Sprintf("0c7a3c3e-6d2f-4b43-9d55-%012d", i)),
		ResourceVersion: fmt.Sprint(1000000 + i), Generation: 2, CreationTimestamp: metav1.Now(),
		Labels: map[string]string{
			clusterv1.ClusterNameLabel: "cluster-1", clusterv1.MachineDeploymentNameLabel: "cluster-1-workers",
			clusterv1.MachineSetNameLabel: "cluster-1-workers-7xk2p", "machine-template-hash": "2715834721-7xk2p",
		},
		Annotations: map[string]string{
			clusterv1.TemplateClonedFromNameAnnotation:      "cluster-1-workers",
			clusterv1.TemplateClonedFromGroupKindAnnotation: "TalosConfigTemplate." + bootstrapv1.GroupVersion.Group,
		},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "manager", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:bootstrap":{}}}`)}},
	}
}

func exampleOwner(kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(), Kind: kind, Name: name, UID: types.UID("0c7a3c3e-6d2f-4b43-9d55-" + name[len(name)-5:] + "1234567"),
		Controller: new(true), BlockOwnerDeletion: new(true),
	}}
}

func exampleMachine(i int) *clusterv1.Machine {
	machine := &clusterv1.Machine{ObjectMeta: exampleMeta(i)}
	machine.OwnerReferences = exampleOwner("MachineSet", "cluster-1-workers-7xk2p")
	machine.Finalizers = []string{clusterv1.MachineFinalizer}
	machine.Spec = clusterv1.MachineSpec{
		ClusterName: "cluster-1", Version: "v1.36.1", ProviderID: "sim:///production/" + machine.Name,
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "GenericMachine", Name: machine.Name},
		Bootstrap: clusterv1.Bootstrap{
			ConfigRef:      clusterv1.ContractVersionedObjectReference{APIGroup: bootstrapv1.GroupVersion.Group, Kind: "TalosConfig", Name: machine.Name},
			DataSecretName: &machine.Name,
		},
	}
	machine.Status.NodeRef.Name = machine.Name
	machine.Status.Conditions = exampleConditions(9)

	return machine
}

func exampleConfig(i int) *bootstrapv1.TalosConfig {
	config := &bootstrapv1.TalosConfig{ObjectMeta: exampleMeta(i)}
	config.OwnerReferences = exampleOwner("Machine", config.Name)
	config.Spec.Hostname.Source = bootstrapv1.HostnameSourceMachineName
	config.Status = bootstrapv1.TalosConfigStatus{
		DataSecretName: config.Name, ConfigContract: "v1.14", RenderedHash: strings.Repeat("0a", 32), ObservedGeneration: 1,
		Conditions: exampleConditions(5), Inputs: exampleInputs(config.Name),
	}
	config.Status.Initialization.DataSecretCreated = new(true)

	return config
}

func exampleInputs(machine string) []bootstrapv1.RenderedInput {
	inputs := []bootstrapv1.RenderedInput{
		{Kind: "Cluster", Name: "cluster-1", Layer: "Base", Generation: new(int64(3))},
		{Kind: "TalosClusterConfig", Name: "cluster-1", Layer: "System", Generation: new(int64(3))},
		{Kind: "Machine", Name: machine, Layer: "Base", Generation: new(int64(2))},
	}

	for i := range 5 {
		inputs = append(inputs, bootstrapv1.RenderedInput{Kind: "TalosConfigPatch", Name: fmt.Sprintf("patch-%d", i), Layer: "Cluster", Generation: new(int64(1))})
	}

	return inputs
}

func exampleConditions(n int) []metav1.Condition {
	conditions := make([]metav1.Condition, n)
	for i := range conditions {
		conditions[i] = metav1.Condition{
			Type: fmt.Sprintf("SomethingAvailable%d", i), Status: metav1.ConditionTrue, Reason: "SomethingAvailable", LastTransitionTime: metav1.Now(), ObservedGeneration: 1,
		}
	}

	return conditions
}

func exampleSecret(i int) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: exampleMeta(i), Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"value": make([]byte, 6000)}}
	secret.Labels = map[string]string{clusterv1.ClusterNameLabel: "cluster-1"}
	secret.OwnerReferences = exampleOwner("TalosConfig", secret.Name)

	inputs, _ := json.Marshal(exampleInputs("")) //nolint:errchkjson // it can be encoded
	secret.Annotations = map[string]string{
		bootstrapv1.ConfigContractAnnotation: "v1.14",
		bootstrapv1.RenderedHashAnnotation:   strings.Repeat("0a", 32),
		bootstrapv1.RenderedInputsAnnotation: string(inputs),
	}

	return secret
}
