// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/test/harness"
	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
	"github.com/maesh-dev/ichor/test/stage"
)

// patience bounds every wait for something that must happen.
const patience = 4 * time.Minute

// shared is the stage of all scenarios.
var shared *stage.Stage

func TestMain(m *testing.M) {
	logs, err := os.CreateTemp("", "ichor-scenario-*.log")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}

	logger := harness.NewLogger(logs)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)

	if shared, err = stage.Start(context.Background(), stage.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}

	code := m.Run()

	if err := shared.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)

		code = 1
	}

	content, err := os.ReadFile(logs.Name())
	if err != nil || strings.Contains(string(content), "is forbidden: User ") {
		fmt.Fprintln(os.Stderr, "the rights of an installation do not suffice: the log speaks of something that the user is forbidden", err)

		code = 1
	}

	if code == 0 {
		_ = os.Remove(logs.Name()) // a temporary file
	} else {
		fmt.Fprintln(os.Stderr, "log of the managers:", logs.Name())
	}

	os.Exit(code)
}

// scenario is one namespace of the stage.
type scenario struct {
	*WithT
	*stage.Stage

	t         *testing.T
	ctx       context.Context
	namespace string
}

func newScenario(t *testing.T) *scenario {
	t.Helper()

	s := &scenario{WithT: NewWithT(t), Stage: shared, t: t, ctx: t.Context()}
	s.SetDefaultEventuallyTimeout(patience)
	s.SetDefaultEventuallyPollingInterval(100 * time.Millisecond)

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "scenario-"}}
	s.Expect(s.Client.Create(s.ctx, namespace)).To(Succeed())
	s.namespace = namespace.Name

	return s
}

func (s *scenario) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: s.namespace, Name: name}
}

// create creates the objects of a YAML text in the scenario's namespace.
func (s *scenario) create(text string) {
	s.t.Helper()

	objects, err := harness.DecodeYAML([]byte(text))
	s.Expect(err).NotTo(HaveOccurred())

	for _, object := range objects {
		object.SetNamespace(s.namespace)
		s.Expect(s.Client.Create(s.ctx, object)).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
	}
}

// patch reads an object, changes it and writes the difference.
func (s *scenario) patch(object client.Object, name string, change func()) {
	s.t.Helper()
	s.Expect(s.Client.Get(s.ctx, s.key(name), object)).To(Succeed())

	before, ok := object.DeepCopyObject().(client.Object)
	s.Expect(ok).To(BeTrue())
	change()
	s.Expect(s.Client.Patch(s.ctx, object, client.MergeFrom(before))).To(Succeed())
}

// simMachine reads a SimMachine.
func (s *scenario) simMachine(g Gomega, name string) *infrav1.SimMachine {
	object := &infrav1.SimMachine{}
	g.Expect(s.Client.Get(s.ctx, s.key(name), object)).To(Succeed())

	return object
}

// ready waits until Ready of a SimMachine has a reason, and the machine is provisioned: a machine that says so is there.
func (s *scenario) ready(name, reason string) *infrav1.SimMachine {
	s.t.Helper()

	var object *infrav1.SimMachine

	s.Eventually(func(g Gomega) {
		object = s.simMachine(g, name)
		condition := conditions.Get(object, infrav1.ReadyCondition)
		g.Expect(condition).NotTo(BeNil())
		g.Expect(condition.Reason).To(Equal(reason), condition.Message)
		// Cluster API's patches write conditions first.
		g.Expect(ptr.Deref(object.Status.Initialization.Provisioned, false)).To(BeTrue())
		g.Expect(object.Spec.ProviderID).NotTo(BeEmpty())
	}).Should(Succeed())

	return object
}

// machines are the Machines of the namespace, once there are so many and all are provisioned.
func (s *scenario) machines(count int) []clusterv1.Machine {
	s.t.Helper()

	list := &clusterv1.MachineList{}

	s.Eventually(func(g Gomega) {
		g.Expect(s.Client.List(s.ctx, list, client.InNamespace(s.namespace))).To(Succeed())
		g.Expect(len(list.Items)).To(Equal(count))

		for i := range list.Items {
			g.Expect(list.Items[i].Status.Addresses).NotTo(BeEmpty(), "%s: %s", list.Items[i].Name, describe(&list.Items[i]))
		}
	}).Should(Succeed())

	return list.Items
}

func describe(object conditions.Getter) string {
	text := ""
	for _, condition := range object.GetConditions() {
		text += fmt.Sprintf("\n%s=%s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message)
	}

	return text
}

// address is a machine's.
func address(machine clusterv1.Machine) string {
	for _, each := range machine.Status.Addresses {
		if each.Type == clusterv1.MachineInternalIP {
			return each.Address
		}
	}

	return ""
}
