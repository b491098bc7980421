// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/clustersecrets"
	"github.com/maesh-dev/ichor/internal/etcd"
	"github.com/maesh-dev/ichor/internal/rollout"
	"github.com/maesh-dev/ichor/internal/talos"
)

// No message is longer than the API takes, whatever nodes, users and Cluster API say and of however many machines; and what Cluster API makes of
// those of a Machine is not either.
func TestMessagesAreBounded(t *testing.T) {
	content, err := os.ReadFile("../../../config/controlplane/crd/bases/controlplane.ichor.maesh.dev_taloscontrolplanes.yaml")
	if err != nil {
		t.Fatal(err)
	}

	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(content, definition); err != nil {
		t.Fatal(err)
	}

	status := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties
	ofPlan, ofCondition := status["plan"].Properties["message"].MaxLength, status["conditions"].Items.Schema.Properties["message"].MaxLength

	endless := strings.Repeat("endless ", 20_000)
	seen := wellPlane()

	for i := range 40 {
		name := fmt.Sprintf("more-%d", i)
		object := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.MachineSpec{ProviderID: "sim:///" + name, Version: "v1.36.1"}}
		seen.machines = append(seen.machines, &machine{object: object, stored: object.DeepCopy()})
		seen.snapshot.Machines = append(seen.snapshot.Machines, rollout.Machine{
			Name: name, Ours: true, Differences: []rollout.Difference{{Message: name + endless}, {Message: endless}}, Etcd: etcd.View{Answered: true, Problem: endless},
		})
	}

	seen.plane = newMemory().of(client.ObjectKey{Name: "cp"}, "plane")

	for i, m := range seen.machines {
		m.object.UID = types.UID(m.object.Name)
		conditions.Set(m.object, no(clusterv1.MachineHealthCheckSucceededCondition, "X", endless))
		conditions.Set(m.object, no(controlplanev1.MachineOwnerRemediatedCondition, "X", endless))

		seen.plane.views[m.object.UID] = view{at: seen.snapshot.Now, node: talos.Node{
			Etcd: seen.snapshot.Machines[i].Etcd, Hostname: endless, PodsKnown: true, Stage: endless,
			StaticPods: []talos.StaticPod{{Component: "kube-apiserver", Problem: endless}, {Component: "kube-scheduler", Problem: endless}},
			Services:   []talos.Service{{ID: endless, State: endless}},
		}}
	}

	seen.nodes = answers{}
	(&Reconciler{}).judge(seen)

	for _, m := range seen.machines {
		remediation(m.object, &rollout.RemediationNote{Machine: m.object.Name, Reason: "X", Message: endless})(m.object)

		sum := 0

		for _, gate := range readinessGates {
			sum += utf8.RuneCountInString(conditions.GetMessage(m.object, gate.ConditionType))
		}

		if sum == 0 || int64(2*sum) > *ofCondition {
			t.Errorf("Machine %s: what the readiness gates say has %d characters", m.object.Name, sum)
		}

		for _, condition := range m.object.Status.Conditions {
			if condition.Type != clusterv1.MachineHealthCheckSucceededCondition && len(condition.Message) > maxMachineMessage {
				t.Errorf("Machine %s, %s: %d bytes", m.object.Name, condition.Type, len(condition.Message))
			}
		}
	}

	seen.secretsFault = &clustersecrets.FaultError{Reason: "Invalid", Err: errors.New(endless)}
	(&Reconciler{}).setStatus(t.Context(), seen, rollout.Decision{Action: rollout.Wait{}, Reason: "X", Message: endless}, errors.New("fault "+endless))

	if message := seen.controlPlane.Status.Plan.Message; message == "" || int64(utf8.RuneCountInString(message)) > *ofPlan {
		t.Errorf("plan: %d characters, and it may have %d", utf8.RuneCountInString(message), *ofPlan)
	}

	for _, condition := range seen.controlPlane.Status.Conditions {
		if n := utf8.RuneCountInString(condition.Message); int64(n) > *ofCondition || n > maxMessage {
			t.Errorf("%s: %d characters, and it may have %d", condition.Type, n, *ofCondition)
		}
	}
}
