// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/test/builder"
	"github.com/maesh-dev/ichor/test/harness"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	"github.com/maesh-dev/ichor/test/invariants"
	play "github.com/maesh-dev/ichor/test/scenario"
	"github.com/maesh-dev/ichor/test/stage"
)

// ladder are the versions of the class that is upgraded: one of each minor.
var ladder = []string{"v1.34.4", "v1.35.2", "v1.36.1"}

// A cluster of the class in templates/, on machines without Kubernetes: what the topology says, and what the class says, reaches the control
// plane and the workers; without a change nothing is written; another template in the class is taken over; and nobody changes a template.
//
// contract: a TalosControlPlaneTemplate works in a ClusterClass: dry runs are accepted, and nothing is written without a change.
func TestTopology(t *testing.T) {
	s := newScenario(t)
	t.Parallel()

	s.class("Light", nil)
	s.Create(ofClass(ladder[0], "v1.14.0"))
	s.made()
	s.bootstrappedOnce()

	tcp := s.controlPlane()
	s.Expect(tcp.Spec.Version).To(Equal(ladder[0]))
	s.Expect(tcp.Spec.Replicas).To(HaveValue(BeEquivalentTo(1)))
	s.Expect(tcp.Spec.Rollout.Strategy.Type).To(Equal(controlplanev1.RollingUpdateRollout), "a variable of the class")
	s.Expect(tcp.Spec.TalosConfigSpec.Hostname.Source).To(Equal(bootstrapv1.HostnameSourceMachineName), "the template in the class")

	machine := &infrav1.SimMachine{}
	s.Expect(s.Client.Get(s.ctx, s.key(s.machineList()[0].Name), machine)).To(Succeed())
	s.Expect(machine.Spec.Image).To(HaveSuffix(":v1.14.0"), "the Talos that the topology says")

	s.untouched()

	s.otherTemplates()
	s.Eventually(func(g Gomega) {
		tcp = s.controlPlane()
		g.Expect(tcp.Spec.TalosConfigSpec.Hostname.Source).To(Equal(bootstrapv1.HostnameSourceInfrastructureMachineName))
		g.Expect(s.workerTemplate(g).Spec.Template.Spec.Hostname.Source).To(Equal(bootstrapv1.HostnameSourceInfrastructureMachineName))
	}).Should(Succeed())

	s.templatesStay()

	// Without a list of versions in the class, Cluster API goes from one minor to the next.
	err := s.topology(func(topology *clusterv1.Topology) { topology.Version = ladder[2] })
	s.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
	s.Expect(err).To(MatchError(ContainSubstring("spec.topology.version")))

	s.deleteCluster()
}

// The version of a topology goes up by two minors: one after the other, the control plane first and by replacement, then the workers. Then the
// class refers to other templates, and all machines are replaced once more.
//
// contract: several versions in a row are gone through, and status.versions says when the next one, and the workers' turn, has come.
func TestTopologyUpgrade(t *testing.T) {
	onlyLong(t)

	s := newScenario(t)
	t.Parallel()

	s.class("Full", func(class *clusterv1.ClusterClass) { class.Spec.KubernetesVersions = ladder })
	s.Create(ofClass(ladder[0], "v1.14.1"))
	s.made()
	s.settled(1)
	before := s.workers(ladder[0], nil)

	story := s.follow()
	s.Expect(s.topology(func(topology *clusterv1.Topology) { topology.Version = ladder[2] })).To(Succeed())
	after := s.workers(ladder[2], before)
	s.settled(1)
	s.untouched()

	s.Expect(story()).To(Equal([]string{
		"the control plane should run v1.34.4", "the control plane runs v1.34.4", "workers should run v1.34.4",
		"the control plane should run v1.35.2", "the control plane runs v1.34.4 v1.35.2", "the control plane runs v1.35.2",
		"the control plane should run v1.36.1", "the control plane runs v1.35.2 v1.36.1", "the control plane runs v1.36.1",
		"workers should run v1.36.1",
	}))

	// Without a new version, Cluster API does not have workers wait for the control plane.
	s.Watch.Allow(2)

	first := names(s.machineList())
	s.otherTemplates()
	s.workers(ladder[2], after)
	s.Eventually(func(g Gomega) {
		now := names(s.machineList())
		g.Expect(now).To(HaveLen(1))
		g.Expect(now).NotTo(Equal(first))
	}).Should(Succeed())
	s.settled(1)
	s.untouched()

	s.deleteCluster()
}

// class creates the ClusterClass of templates/ with the templates that it refers to, for machines of a fidelity. The control plane gets the name
// that scenarios know.
func (s *scenario) class(fidelity string, change func(*clusterv1.ClusterClass)) {
	s.t.Helper()

	content, err := os.ReadFile(filepath.Join("..", "..", "templates", "clusterclass-ichor.yaml"))
	s.Expect(err).NotTo(HaveOccurred())

	objects, err := harness.DecodeYAML(content)
	s.Expect(err).NotTo(HaveOccurred())

	for _, object := range objects {
		object.SetNamespace(s.namespace)

		if object.GetKind() == "SimClusterTemplate" {
			s.Expect(unstructured.SetNestedField(object.Object, fidelity, "spec", "template", "spec", "fidelity")).To(Succeed())
		}

		s.Expect(s.Client.Create(s.ctx, object, client.FieldValidation(metav1.FieldValidationStrict))).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
	}

	s.changeClass(func(class *clusterv1.ClusterClass) {
		class.Spec.ControlPlane.Naming.Template = "cp"

		if change != nil {
			change(class)
		}
	})

	s.Eventually(func(g Gomega) {
		class := &clusterv1.ClusterClass{}
		g.Expect(s.Client.Get(s.ctx, s.key("ichor"), class)).To(Succeed())
		g.Expect(class.Status.ObservedGeneration).To(Equal(class.Generation))
		g.Expect(conditions.IsTrue(class, clusterv1.ClusterClassVariablesReadyCondition)).To(BeTrue(), play.Describe(class))
	}).Should(Succeed())
}

func (s *scenario) changeClass(change func(*clusterv1.ClusterClass)) {
	s.t.Helper()

	class := &clusterv1.ClusterClass{}
	s.Patch(class, "ichor", func() { change(class) })
}

// topology changes the Cluster's topology, and returns what the API server says.
func (s *scenario) topology(change func(*clusterv1.Topology)) error {
	s.t.Helper()

	cluster := &clusterv1.Cluster{}
	s.Expect(s.Client.Get(s.ctx, s.key("c"), cluster)).To(Succeed())
	before := cluster.DeepCopy()
	change(&cluster.Spec.Topology)

	return s.Client.Patch(s.ctx, cluster, client.MergeFrom(before))
}

// made waits until the topology controller has made the control plane.
func (s *scenario) made() {
	s.t.Helper()
	s.Eventually(func() error { return s.Client.Get(s.ctx, s.key("cp"), &controlplanev1.TalosControlPlane{}) }).Should(Succeed())
}

// untouched checks that the topology controller, which is made to look again and again, has nothing to change: neither a spec nor a template.
func (s *scenario) untouched() {
	s.t.Helper()
	s.Expect(invariants.Reconciled(s.ctx, s.Client, s.key(play.Cluster), patience)).To(Succeed())

	before := s.generations()
	s.Expect(invariants.LookAgain(s.ctx, s.Client, s.key(play.Cluster), 4, patience)).To(Succeed())
	s.Expect(s.generations()).To(Equal(before), "without a change nothing is made or touched")
}

// generations are the generations of all that the topology controller makes.
func (s *scenario) generations() map[string]int64 {
	s.t.Helper()

	found := map[string]int64{}

	for _, list := range []client.ObjectList{
		&controlplanev1.TalosControlPlaneList{}, &controlplanev1.TalosControlPlaneTemplateList{}, &bootstrapv1.TalosConfigTemplateList{},
		&infrav1.SimMachineTemplateList{}, &clusterv1.MachineDeploymentList{},
	} {
		s.Expect(s.Client.List(s.ctx, list, client.InNamespace(s.namespace))).To(Succeed())
		s.Expect(meta.EachListItem(list, func(item runtime.Object) error {
			object := item.(client.Object)
			found[fmt.Sprintf("%T %s %s", object, object.GetName(), object.GetUID())] = object.GetGeneration()

			return nil
		})).To(Succeed())
	}

	return found
}

// otherTemplates makes templates with another source of hostnames, which a machine keeps for life, and has the class refer to them.
func (s *scenario) otherTemplates() {
	s.t.Helper()

	source := bootstrapv1.HostnameSpec{Source: bootstrapv1.HostnameSourceInfrastructureMachineName}

	controlPlane := &controlplanev1.TalosControlPlaneTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "ichor-2"}}
	controlPlane.Spec.Template.Spec.TalosConfigSpec.Hostname = source
	s.Expect(s.Client.Create(s.ctx, controlPlane)).To(Succeed())

	worker := &bootstrapv1.TalosConfigTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "ichor-worker-2"}}
	worker.Spec.Template.Spec.Hostname = source
	s.Expect(s.Client.Create(s.ctx, worker)).To(Succeed())

	s.changeClass(func(class *clusterv1.ClusterClass) {
		class.Spec.ControlPlane.TemplateRef.Name = controlPlane.Name
		class.Spec.Workers.MachineDeployments[0].Bootstrap.TemplateRef.Name = worker.Name
	})
}

// templatesStay checks that templates cannot be changed, not in a dry run either, but for the topology controller's dry runs.
func (s *scenario) templatesStay() {
	s.t.Helper()

	for _, template := range []client.Object{
		&controlplanev1.TalosControlPlaneTemplate{ObjectMeta: metav1.ObjectMeta{Name: "ichor"}},
		&bootstrapv1.TalosConfigTemplate{ObjectMeta: metav1.ObjectMeta{Name: "ichor-worker"}},
	} {
		s.Expect(s.Client.Get(s.ctx, s.key(template.GetName()), template)).To(Succeed())

		contract := "v1.13"
		switch template := template.(type) {
		case *controlplanev1.TalosControlPlaneTemplate:
			template.Spec.Template.Spec.TalosConfigSpec.ConfigContract = contract
		case *bootstrapv1.TalosConfigTemplate:
			template.Spec.Template.Spec.ConfigContract = contract
		}

		refused := MatchError(ContainSubstring("a template cannot be changed"))
		s.Expect(s.Client.Update(s.ctx, template)).To(refused)
		s.Expect(s.Client.Update(s.ctx, template, client.DryRunAll)).To(refused)

		template.SetAnnotations(map[string]string{clusterv1.TopologyDryRunAnnotation: ""})
		s.Expect(s.Client.Update(s.ctx, template)).To(refused, "the annotation alone is no dry run")
		s.Expect(s.Client.Update(s.ctx, template, client.DryRunAll)).To(Succeed())
	}
}

// workerTemplate is what the TalosConfigs of workers are made from.
func (s *scenario) workerTemplate(g Gomega) *bootstrapv1.TalosConfigTemplate {
	list := &clusterv1.MachineDeploymentList{}
	g.Expect(s.Client.List(s.ctx, list, client.InNamespace(s.namespace))).To(Succeed())
	g.Expect(list.Items).To(HaveLen(1))

	template := &bootstrapv1.TalosConfigTemplate{}
	g.Expect(s.Client.Get(s.ctx, s.key(list.Items[0].Spec.Template.Spec.Bootstrap.ConfigRef.Name), template)).To(Succeed())

	return template
}

// workers waits until the workers are others than those before, of a version, and all of them available. It returns their names.
func (s *scenario) workers(version string, before []string) []string {
	s.t.Helper()

	var found []string

	s.Eventually(func(g Gomega) {
		list := &clusterv1.MachineDeploymentList{}
		g.Expect(s.Client.List(s.ctx, list, client.InNamespace(s.namespace))).To(Succeed())
		g.Expect(list.Items).To(HaveLen(1))

		deployment := &list.Items[0]
		g.Expect(deployment.Status.ObservedGeneration).To(Equal(deployment.Generation))
		g.Expect(deployment.Spec.Template.Spec.Version).To(Equal(version))

		want := ptr.Deref(deployment.Spec.Replicas, -1)
		g.Expect(deployment.Status.Replicas).To(HaveValue(Equal(want)), play.Describe(deployment))
		g.Expect(deployment.Status.UpToDateReplicas).To(HaveValue(Equal(want)), play.Describe(deployment))
		g.Expect(deployment.Status.AvailableReplicas).To(HaveValue(Equal(want)), play.Describe(deployment))

		machines := &clusterv1.MachineList{}
		g.Expect(s.Client.List(s.ctx, machines, client.InNamespace(s.namespace),
			client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: deployment.Name})).To(Succeed())

		found = names(machines.Items)
		g.Expect(found).To(HaveLen(int(want)))

		for i := range machines.Items {
			g.Expect(before).NotTo(ContainElement(machines.Items[i].Name))
			g.Expect(machines.Items[i].Status.NodeInfo).To(HaveField("KubeletVersion", version))
		}
	}).Should(Succeed())
	s.t.Logf("workers of %s after %s", version, time.Since(s.begin).Round(100*time.Millisecond))

	return found
}

// follow writes down what versions the control plane and the workers should run, and which the control plane runs, each time that it changes.
// What it returns ends that and is what has been written.
func (s *scenario) follow() func() []string {
	s.t.Helper()

	c, err := client.NewWithWatch(s.Config(), client.Options{Scheme: stage.NewScheme()})
	s.Expect(err).NotTo(HaveOccurred())

	ctx, cancel := context.WithCancel(s.ctx)
	s.t.Cleanup(cancel)

	var (
		mu    sync.Mutex
		story []string
		last  = map[string]string{}
		done  sync.WaitGroup
	)

	say := func(subject, version string) {
		mu.Lock()
		defer mu.Unlock()

		if version != "" && last[subject] != version {
			last[subject] = version
			story = append(story, subject+" "+version)
		}
	}

	read := func(list client.ObjectList, hear func(client.Object)) {
		w, err := c.Watch(ctx, list, client.InNamespace(s.namespace))
		s.Expect(err).NotTo(HaveOccurred())

		done.Go(func() {
			for event := range w.ResultChan() {
				if object, ok := event.Object.(client.Object); ok && event.Type != watch.Deleted {
					hear(object)
				}
			}
		})
	}

	read(&controlplanev1.TalosControlPlaneList{}, func(object client.Object) {
		tcp := object.(*controlplanev1.TalosControlPlane)
		say("the control plane should run", tcp.Spec.Version)

		var versions []string
		for _, each := range tcp.Status.Versions {
			versions = append(versions, each.Version)
		}

		say("the control plane runs", strings.Join(versions, " "))
	})
	// The order of what two watches bring is not that of what happened when both happen at once.
	s.Eventually(func() int { mu.Lock(); defer mu.Unlock(); return len(story) }).Should(Equal(2))
	read(&clusterv1.MachineDeploymentList{}, func(object client.Object) {
		say("workers should run", object.(*clusterv1.MachineDeployment).Spec.Template.Spec.Version)
	})
	s.Eventually(func() int { mu.Lock(); defer mu.Unlock(); return len(story) }).Should(Equal(3))

	return func() []string {
		cancel()
		done.Wait()

		return story
	}
}

// ofClass is a Cluster of the class, with one control-plane machine and one worker.
func ofClass(version, talos string) *builder.ClusterBuilder {
	return builder.Cluster(play.Cluster).Topology(clusterv1.Topology{
		ClassRef: clusterv1.ClusterClassRef{Name: "ichor"}, Version: version, ControlPlane: clusterv1.ControlPlaneTopology{Replicas: new(int32(1))},
		Workers: clusterv1.WorkersTopology{MachineDeployments: []clusterv1.MachineDeploymentTopology{{Class: "worker", Name: "workers", Replicas: new(int32(1))}}},
		Variables: []clusterv1.ClusterVariable{
			{Name: "talosVersion", Value: apiextensionsv1.JSON{Raw: fmt.Appendf(nil, "%q", talos)}},
			{Name: "rolloutStrategy", Value: apiextensionsv1.JSON{Raw: []byte(`"RollingUpdate"`)}},
		},
	}).Config(func(config *bootstrapv1.TalosClusterConfigSpec) { config.Talos.Version = talos })
}
