// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/test/builder"
	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/invariants"
)

// classYAML is a ClusterClass with Ichor's template, and a variable for the patches of the workers.
const classYAML = `
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosConfigTemplate
metadata: {name: class-workers}
spec:
  template:
    spec:
      hostname: {source: MachineName}
      install: {disk: /dev/sda}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: GenericInfrastructureClusterTemplate
metadata: {name: class}
spec: {template: {spec: {}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: GenericInfrastructureMachineTemplate
metadata: {name: class}
spec: {template: {spec: {}}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: GenericControlPlaneTemplate
metadata: {name: class}
spec: {template: {spec: {}}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: class}
spec:
  infrastructure:
    templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: GenericInfrastructureClusterTemplate, name: class}
  controlPlane:
    templateRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: GenericControlPlaneTemplate, name: class}
  workers:
    machineDeployments:
      - class: worker
        bootstrap:
          templateRef: {apiVersion: bootstrap.ichor.maesh.dev/v1alpha1, kind: TalosConfigTemplate, name: class-workers}
        infrastructure:
          templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: GenericInfrastructureMachineTemplate, name: class}
  variables:
    - name: workerPatches
      required: false
      schema:
        openAPIV3Schema:
          type: array
          items: {type: object, required: [name], properties: {name: {type: string}}}
  patches:
    - name: workerPatches
      enabledIf: "{{ if .workerPatches }}true{{ end }}"
      definitions:
        - selector:
            apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
            kind: TalosConfigTemplate
            matchResources: {machineDeploymentClass: {names: [worker]}}
          jsonPatches:
            - {op: add, path: /spec/template/spec/patchRefs, valueFrom: {variable: workerPatches}}
`

// class are the objects of it.
func class(w *world) builder.These {
	w.t.Helper()

	decoded, err := harness.DecodeYAML([]byte(classYAML))
	w.Expect(err).NotTo(HaveOccurred())

	objects := make(builder.These, 0, len(decoded))
	for _, object := range decoded {
		objects = append(objects, object)
	}

	return objects
}

// contract: a TalosConfigTemplate works in a ClusterClass: the topology controller's dry runs are accepted, a change makes a new
// template and nothing else does, and nobody else can change a template.
func TestClusterClass(t *testing.T) {
	w := newWorld(t)
	w.kubeconfig()
	w.create(class(w), builder.Cluster("c").Topology(clusterv1.Topology{
		ClassRef: clusterv1.ClusterClassRef{Name: "class"}, Version: builder.KubernetesVersion, ControlPlane: clusterv1.ControlPlaneTopology{Replicas: new(int32(1))},
		Workers: clusterv1.WorkersTopology{MachineDeployments: []clusterv1.MachineDeploymentTopology{{Class: "worker", Name: "md", Replicas: new(int32(2))}}},
	}).Config(func(config *bootstrapv1.TalosClusterConfigSpec) {
		config.Talos.Installer.Platform = "metal"
	}), mapCount())

	before := w.running(2)
	templates := w.templates()
	w.Expect(templates).To(HaveLen(2), "that of the class and that of the MachineDeployment")

	w.lookAgain()
	w.Expect(w.templates()).To(Equal(templates), "without a change no template is made or touched")

	cluster := &clusterv1.Cluster{}
	w.change(cluster, "c", func() {
		cluster.Spec.Topology.Variables = []clusterv1.ClusterVariable{{
			Name: "workerPatches", Value: apiextensionsv1.JSON{Raw: []byte(`[{"name": "map-count"}]`)},
		}}
	})
	w.Expect(invariants.Reconciled(t.Context(), w.admin, w.key("c"), patience)).To(Succeed())

	var after map[string]machineOf

	w.Eventually(func(g Gomega) {
		after = w.running(2)
		for name, machine := range after {
			g.Expect(before).NotTo(HaveKey(name))
			g.Expect(string(machine.data.Data["value"])).To(ContainSubstring(`vm.max_map_count: "262144"`), name)
		}
	}).Should(Succeed())

	w.Eventually(func() int { return len(w.templates()) }).Should(Equal(2), "the old template goes with its MachineSet")

	rotated := w.templates()
	w.Expect(rotated).To(HaveKeyWithValue("class-workers", templates["class-workers"]))

	w.lookAgain()
	w.Expect(w.templates()).To(Equal(rotated))

	for name, machine := range w.running(2) {
		w.Expect(machine.UID).To(Equal(after[name].UID), "no rollout without end")
	}

	template := &bootstrapv1.TalosConfigTemplate{}
	w.get(template, "class-workers")

	template.Spec.Template.Spec.Install.Disk = "/dev/sdb"
	w.Expect(w.admin.Update(t.Context(), template)).To(MatchError(ContainSubstring("a template cannot be changed")))
}

// templates are the TalosConfigTemplates with their specs' generations.
func (w *world) templates() map[string]string {
	w.t.Helper()

	list := &bootstrapv1.TalosConfigTemplateList{}
	w.list(list)

	found := map[string]string{}
	for _, template := range list.Items {
		found[template.Name] = fmt.Sprintf("%s, generation %d", template.UID, template.Generation)
	}

	return found
}

// lookAgain has the topology controller look again, several times, at a topology that has not changed.
func (w *world) lookAgain() {
	w.t.Helper()
	w.Expect(invariants.LookAgain(w.t.Context(), w.admin, w.key("c"), 5, patience)).To(Succeed())
}
