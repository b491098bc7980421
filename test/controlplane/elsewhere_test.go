// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	"github.com/maesh-dev/ichor/test/installation"
	play "github.com/maesh-dev/ichor/test/scenario"
	"github.com/maesh-dev/ichor/test/stage"
	"github.com/maesh-dev/ichor/test/tools"
)

// awayFor is how long a control plane is left with a node that does not answer: several polls.
const awayFor = 10 * time.Second

// The objects of a control plane come to another management cluster without their status, while the node that has etcd does not answer: nobody
// may take it for one without data, make another machine, or bootstrap. When it answers again the control plane goes on. The machines of both
// management clusters are the same, as a platform's are.
func TestElsewhere(t *testing.T) {
	onlyLong(t)

	// Not in parallel: two management clusters are enough.
	there, err := stage.Start(context.WithoutCancel(t.Context()), stage.Options{Farm: suite.Farm})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(there.Stop()).To(Succeed()) })

	unreachable := func(machine *infrav1.SimMachine, away bool) { machine.Spec.Faults.Unreachable = away }
	off := func(machine *infrav1.SimMachine, away bool) {
		machine.Spec.Power = infrav1.PowerOn
		if away {
			machine.Spec.Power = infrav1.PowerOff
		}
	}

	tests := map[string]struct {
		fidelity infrav1.Fidelity
		away     func(machine *infrav1.SimMachine, away bool)
		bring    func(s *scenario, to *stage.Stage)

		// reason is the plan's while the node is away.
		reason string
	}{
		"by clusterctl, its Talos API is out of reach": {infrav1.FidelityFull, unreachable, (*scenario).move, controlplanev1.PlanMachineUnhealthyReason},
		"from a backup, it is off": {
			infrav1.FidelityInMemory, off, func(s *scenario, to *stage.Stage) { s.restore(to, false) }, controlplanev1.PlanWaitingForMachineReason,
		},
		"from a backup without records, it is off": {
			infrav1.FidelityInMemory, off, func(s *scenario, to *stage.Stage) { s.restore(to, true) }, controlplanev1.PlanWaitingForMachineReason,
		},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScenario(t)
			s.Create(clusterOf(test.fidelity, 1))

			machine := s.settled(1)[0].Name
			s.changeMachine(machine, func(object *infrav1.SimMachine) { test.away(object, true) })
			s.Eventually(func() bool { return s.answers(machine) }).Should(BeFalse())
			test.bring(s, there)

			moved := s.at(there)
			moved.Eventually(func(g Gomega) {
				tcp := moved.controlPlane()
				g.Expect(tcp.Status.Plan.Action).To(Equal("Wait"), play.Describe(tcp))
				g.Expect(tcp.Status.Plan.Reason).To(Equal(test.reason), play.Describe(tcp))
			}).Should(Succeed())
			moved.Consistently(func(g Gomega) {
				g.Expect(moved.controlPlane().Status.Plan.Action).To(Equal("Wait"))
				g.Expect(names(moved.machineList())).To(Equal([]string{machine}))
				g.Expect(s.Bootstraps()).To(Equal(1))
			}).WithTimeout(awayFor).Should(Succeed())

			moved.changeMachine(machine, func(object *infrav1.SimMachine) { test.away(object, false) })
			s.Expect(names(moved.settled(1))).To(Equal([]string{machine}))
			moved.recorded()
		})
	}
}

// at is the scenario in another management cluster, whose machines are the same.
func (s *scenario) at(other *stage.Stage) *scenario {
	there := *s
	there.Scenario = s.At(other)

	return &there
}

// changeMachine changes a SimMachine.
func (s *scenario) changeMachine(name string, change func(*infrav1.SimMachine)) {
	s.t.Helper()

	s.Eventually(func() error {
		object := &infrav1.SimMachine{}
		if err := s.Client.Get(s.ctx, s.key(name), object); err != nil {
			return err
		}

		before := object.DeepCopy()
		change(object)

		return s.Client.Patch(s.ctx, object, client.MergeFrom(before))
	}).Should(Succeed())
}

// answers says whether a machine is on and within reach.
func (s *scenario) answers(name string) bool {
	node := s.Node(name)

	return node.On() && !node.Faults().Unreachable
}

// move moves the namespace with clusterctl.
func (s *scenario) move(to *stage.Stage) {
	s.t.Helper()

	for _, each := range []*stage.Stage{s.Stage, to} {
		s.Expect(installation.LabelCRDs(s.ctx, each.ManagementCluster.Client())).To(Succeed())
	}

	clusterctl, err := tools.Path(s.ctx, tools.Clusterctl)
	s.Expect(err).NotTo(HaveOccurred())

	command := exec.CommandContext(s.ctx, clusterctl, "move", "--namespace", s.namespace,
		"--kubeconfig", s.KubeconfigPath(), "--to-kubeconfig", to.KubeconfigPath())
	directory := s.t.TempDir()
	command.Env = append(os.Environ(), "HOME="+directory, "XDG_CONFIG_HOME="+directory, "CLUSTERCTL_DISABLE_VERSIONCHECK=true")

	output, err := command.CombinedOutput()
	s.Expect(err).NotTo(HaveOccurred(), "%s", output)
}

// restored are the kinds of a cluster's objects, owners before what they own.
var restored = []schema.GroupVersionKind{
	clusterv1.GroupVersion.WithKind("Cluster"), infrav1.GroupVersion.WithKind("SimCluster"), infrav1.GroupVersion.WithKind("SimMachineTemplate"),
	bootstrapv1.GroupVersion.WithKind("TalosClusterConfig"), corev1.SchemeGroupVersion.WithKind("Secret"),
	controlplanev1.GroupVersion.WithKind("TalosControlPlane"), clusterv1.GroupVersion.WithKind("Machine"),
	bootstrapv1.GroupVersion.WithKind("TalosConfig"), infrav1.GroupVersion.WithKind("SimMachine"),
}

// restore makes the objects of the cluster anew in another management cluster, as who restores a backup does: with new UIDs and without status.
// Here the Cluster is paused from then on. Without marks, what says that etcd was bootstrapped is lost, too.
func (s *scenario) restore(to *stage.Stage, withoutMarks bool) {
	s.t.Helper()

	cluster := &clusterv1.Cluster{}
	s.Patch(cluster, play.Cluster, func() { cluster.Spec.Paused = new(true) })

	s.Expect(to.Client.Create(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})).To(Succeed())

	uids := map[types.UID]types.UID{}

	for _, kind := range restored {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		s.Expect(s.Client.List(s.ctx, list, client.InNamespace(s.namespace))).To(Succeed())

		for i := range list.Items {
			object := &list.Items[i]
			before := object.GetUID()
			s.bare(object, uids, withoutMarks)
			s.Expect(to.Client.Create(s.ctx, object)).To(Succeed(), "%s %s", kind.Kind, object.GetName())
			uids[before] = object.GetUID()
		}
	}

	there := &clusterv1.Cluster{}
	s.Expect(to.Client.Get(s.ctx, s.key(play.Cluster), there)).To(Succeed())
	before := there.DeepCopy()
	there.Spec.Paused = nil
	s.Expect(to.Client.Patch(s.ctx, there, client.MergeFrom(before))).To(Succeed())
}

// bare takes from an object what a backup does not bring back.
func (s *scenario) bare(object *unstructured.Unstructured, uids map[types.UID]types.UID, withoutMarks bool) {
	owners := object.GetOwnerReferences()
	for i := range owners {
		owners[i].UID = uids[owners[i].UID]
	}

	object.SetOwnerReferences(slices.DeleteFunc(owners, func(owner metav1.OwnerReference) bool { return owner.UID == "" }))
	object.SetUID("")
	object.SetResourceVersion("")
	object.SetManagedFields(nil)
	unstructured.RemoveNestedField(object.Object, "status")

	if annotations := object.GetAnnotations(); withoutMarks && (object.GetKind() == "TalosControlPlane" || object.GetName() == secrets.BundleName(play.Cluster)) {
		delete(annotations, controlplanev1.BootstrapAnnotation)
		object.SetAnnotations(annotations)
	}
}
