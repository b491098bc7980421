// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/test/builder"
)

// patience bounds every wait for something that must happen.
const patience = 3 * time.Minute

// world is one namespace of a management cluster. Its Cluster is named "c".
type world struct {
	*WithT
	*site
	t         *testing.T
	namespace string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()

	w := &world{WithT: NewWithT(t), site: home, t: t}
	w.SetDefaultEventuallyTimeout(patience)
	w.SetDefaultEventuallyPollingInterval(50 * time.Millisecond)

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "w-"}}
	w.Expect(w.admin.Create(t.Context(), namespace)).To(Succeed())
	w.namespace = namespace.Name

	return w
}

// at is the same namespace in another management cluster.
func (w *world) at(other *site) *world {
	there := *w
	there.site = other

	return &there
}

func (w *world) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: w.namespace, Name: name}
}

// create creates the objects of builders in the world's namespace.
func (w *world) create(builders ...builder.Builder) {
	w.t.Helper()

	for _, object := range builder.Objects(builders...) {
		object.SetNamespace(w.namespace)
		w.Expect(w.admin.Create(w.t.Context(), object)).To(Succeed(), "%T %s", object, object.GetName())
	}
}

// get reads an object, which must exist.
func (w *world) get(object client.Object, name string) {
	w.t.Helper()
	object.SetNamespace(w.namespace)
	object.SetName(name)
	w.Expect(w.admin.Get(w.t.Context(), client.ObjectKeyFromObject(object), object)).To(Succeed())
}

// list reads the objects of a kind in the namespace.
func (w *world) list(list client.ObjectList, options ...client.ListOption) {
	w.t.Helper()
	w.Expect(w.admin.List(w.t.Context(), list, append(options, client.InNamespace(w.namespace))...)).To(Succeed())
}

// change reads an object, changes it and writes it, until no other change has come between.
func (w *world) change(object client.Object, name string, change func()) {
	w.t.Helper()
	w.Eventually(func() error {
		object.SetNamespace(w.namespace)
		object.SetName(name)

		if err := w.admin.Get(w.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}

		change()

		return w.admin.Update(w.t.Context(), object)
	}).Should(Succeed())
}

// cluster creates a Cluster with its settings.
func (w *world) cluster() {
	w.t.Helper()
	w.kubeconfig()
	w.create(builder.GenericCluster("c").ControlPlane(builder.GenericControlPlane("c")))
}

// kubeconfig creates the Secret that a control-plane provider makes, for the package's cluster. It is there before the
// Cluster: Cluster API tries again only after half a minute.
func (w *world) kubeconfig() {
	w.t.Helper()

	content, err := os.ReadFile(home.KubeconfigPath())
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.admin.Create(w.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: "c-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"},
		},
		Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{"value": content},
	})).To(Succeed())
}

// machineOf is a Machine with what Cluster API made for it.
type machineOf struct {
	clusterv1.Machine
	config bootstrapv1.TalosConfig
	data   corev1.Secret
}

// running waits until so many Machines run, besides that of the control plane, and returns them by their names. Nothing else
// is left of Machines that there were before: each TalosConfig and each data Secret has its Machine.
func (w *world) running(count int) map[string]machineOf {
	w.t.Helper()

	found := map[string]machineOf{}

	w.Eventually(func(g Gomega) {
		clear(found)

		machines, configs := &clusterv1.MachineList{}, &bootstrapv1.TalosConfigList{}
		g.Expect(w.admin.List(w.t.Context(), machines, client.InNamespace(w.namespace))).To(Succeed())
		g.Expect(w.admin.List(w.t.Context(), configs, client.InNamespace(w.namespace))).To(Succeed())

		configs.Items = slices.DeleteFunc(configs.Items, ofPool)

		controlPlanes := 0

		for name, machine := range w.match(g, machines.Items, configs.Items) {
			if util.IsControlPlaneMachine(&machine.Machine) {
				controlPlanes++
			} else {
				found[name] = machine
			}
		}

		g.Expect(controlPlanes).To(Equal(1))
		g.Expect(len(found)).To(Equal(count), "Machines")
	}).Should(Succeed())

	return found
}

// ofPool says whether a TalosConfig belongs to a MachinePool.
func ofPool(config bootstrapv1.TalosConfig) bool {
	owner := metav1.GetControllerOf(&config)

	return owner != nil && owner.Kind == "MachinePool"
}

// match brings Machines and what was made for them together. None must be without the other.
func (w *world) match(g Gomega, machines []clusterv1.Machine, configs []bootstrapv1.TalosConfig) map[string]machineOf {
	data := w.dataSecrets(g)
	// Numbers alone: a failure must not print what is in the Secrets.
	g.Expect(len(configs)).To(Equal(len(machines)), "TalosConfigs")
	g.Expect(len(data)).To(Equal(len(machines)), "data Secrets: %s", describeAll(configs))

	found := map[string]machineOf{}

	for _, machine := range machines {
		g.Expect(machine.Status.NodeRef.IsDefined()).To(BeTrue(), "%s: %s", machine.Name, describe(&machine))
		g.Expect(machine.Spec.Bootstrap.DataSecretName).NotTo(BeNil())
		found[machine.Name] = machineOf{Machine: machine, data: data[*machine.Spec.Bootstrap.DataSecretName]}
	}

	for _, config := range configs {
		owner := metav1.GetControllerOf(&config)
		g.Expect(owner).NotTo(BeNil(), config.Name)
		g.Expect(found).To(HaveKey(owner.Name), config.Name)
		g.Expect(conditions.IsTrue(&config, bootstrapv1.TalosConfigReadyCondition)).To(BeTrue(), "%s: %s", config.Name, describe(&config))

		machine := found[owner.Name]
		machine.config = config
		found[owner.Name] = machine
	}

	return found
}

// dataSecrets are those with bootstrap data, by their names, without those of MachinePools.
func (w *world) dataSecrets(g Gomega) map[string]corev1.Secret {
	secrets, pools := &corev1.SecretList{}, &clusterv1.MachinePoolList{}
	g.Expect(w.admin.List(w.t.Context(), secrets, client.InNamespace(w.namespace), client.HasLabels{clusterv1.ClusterNameLabel})).To(Succeed())
	g.Expect(w.admin.List(w.t.Context(), pools, client.InNamespace(w.namespace))).To(Succeed())

	found := map[string]corev1.Secret{}

	for _, secret := range secrets.Items {
		owner := metav1.GetControllerOf(&secret)
		if owner != nil && owner.Kind == "TalosConfig" && !slices.ContainsFunc(pools.Items, func(pool clusterv1.MachinePool) bool {
			return pool.Spec.Template.Spec.Bootstrap.ConfigRef.Name == owner.Name
		}) {
			found[secret.Name] = secret
		}
	}

	return found
}

func describeAll(configs []bootstrapv1.TalosConfig) string {
	lines := make([]string, 0, len(configs))
	for i := range configs {
		lines = append(lines, configs[i].Name+"\n"+describe(&configs[i]))
	}

	return strings.Join(lines, "\n")
}

func describe(object conditions.Getter) string {
	var lines []string
	for _, condition := range object.GetConditions() {
		lines = append(lines, fmt.Sprintf("%s=%s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message))
	}

	return strings.Join(lines, "\n")
}
