// SPDX-License-Identifier: Apache-2.0

package talosconfig_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"text/template"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	machinerysecrets "github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
)

// patience bounds every wait for something that must happen.
const patience = 2 * time.Minute

// world is one namespace of the management cluster. Its Cluster is named "c".
type world struct {
	*WithT
	t         *testing.T
	namespace string
}

// newWorld has the test run beside others.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()

	return newWorldAlone(t)
}

// newWorldAlone is for a test that starts another manager, which would work for all tests, or that counts everything.
func newWorldAlone(t *testing.T) *world {
	t.Helper()

	w := &world{WithT: NewWithT(t), t: t}
	w.SetDefaultEventuallyTimeout(patience)
	w.SetDefaultEventuallyPollingInterval(50 * time.Millisecond)

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "w-"}}
	w.Expect(admin.Create(t.Context(), namespace)).To(Succeed())
	w.namespace = namespace.Name

	return w
}

// create creates the objects of a YAML text in the world's namespace.
func (w *world) create(text string) {
	w.t.Helper()

	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)

	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); err != nil {
			return
		}

		object.SetNamespace(w.namespace)
		w.Expect(admin.Create(w.t.Context(), object)).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
	}
}

// delete deletes an object.
func (w *world) delete(object client.Object, name string) {
	w.t.Helper()
	w.named(object, name)
	w.Expect(admin.Delete(w.t.Context(), object)).To(Succeed())
}

// get reads an object, which must exist.
func (w *world) get(object client.Object, name string) {
	w.t.Helper()
	w.named(object, name)
	w.Expect(admin.Get(w.t.Context(), client.ObjectKeyFromObject(object), object)).To(Succeed())
}

func (w *world) named(object client.Object, name string) {
	object.SetNamespace(w.namespace)
	object.SetName(name)
}

// change reads an object, changes it and writes it.
func (w *world) change(object client.Object, name string, change func()) {
	w.t.Helper()
	w.Eventually(func() error {
		w.named(object, name)

		if err := admin.Get(w.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}

		change()

		return admin.Update(w.t.Context(), object)
	}).Should(Succeed())
}

// changeStatus is change for the status.
func (w *world) changeStatus(object client.Object, name string, change func()) {
	w.t.Helper()
	w.Eventually(func() error {
		w.named(object, name)

		if err := admin.Get(w.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}

		change()

		return admin.Status().Update(w.t.Context(), object)
	}).Should(Succeed())
}

const clusterYAML = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: c, labels: {site: lab}}
spec:
  clusterNetwork:
    pods: {cidrBlocks: [10.244.0.0/16]}
    services: {cidrBlocks: [10.96.0.0/12]}
    serviceDomain: cluster.local
  controlPlaneEndpoint: {host: c.example.com, port: 6443}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: GenericInfrastructureCluster, name: c}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: GenericInfrastructureCluster
metadata: {name: c}
`

// cluster creates the Cluster, whose infrastructure is there.
func (w *world) cluster() {
	w.t.Helper()
	w.create(clusterYAML)
	w.provision()
}

// provision plays the infrastructure provider, which says that the cluster's infrastructure is there.
func (w *world) provision() {
	w.t.Helper()

	infrastructure := &unstructured.Unstructured{}
	infrastructure.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1beta2")
	infrastructure.SetKind("GenericInfrastructureCluster")
	w.changeStatus(infrastructure, "c", func() {
		w.Expect(unstructured.SetNestedField(infrastructure.Object, true, "status", "initialization", "provisioned")).To(Succeed())
	})
}

const clusterConfigYAML = `
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosClusterConfig
metadata: {name: c}
spec:
  clusterName: c
  talos: {version: v1.14.1}
`

const machineYAML = `
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosConfig
metadata: {name: "{{.Name}}"}
spec:
  hostname: {source: MachineName}
  {{.Spec}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: GenericInfrastructureMachine
metadata: {name: "{{.Name}}"}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata:
  name: "{{.Name}}"
  labels: {cluster.x-k8s.io/cluster-name: c, {{.Labels}}}
spec:
  clusterName: c
  version: v1.36.1
  bootstrap:
    configRef: {apiGroup: bootstrap.ichor.maesh.dev, kind: TalosConfig, name: "{{.Name}}"}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: GenericInfrastructureMachine, name: "{{.Name}}"}
`

var machineTemplate = template.Must(template.New("machine").Parse(machineYAML))

// machine creates a Machine with its TalosConfig. The labels are those of a YAML flow mapping, the spec is more of the TalosConfig's.
func (w *world) machine(name, labels, spec string) {
	w.t.Helper()

	var text bytes.Buffer
	w.Expect(machineTemplate.Execute(&text, struct{ Name, Labels, Spec string }{name, labels, spec})).To(Succeed())
	w.create(text.String())
}

// ownedConfig creates a TalosConfig with what Cluster API would set later: the reference to its owner of the same name, and
// the label. It reads the owner into the object.
func (w *world) ownedConfig(name, kind string, owner client.Object) {
	w.t.Helper()
	w.get(owner, name)

	config := &bootstrapv1.TalosConfig{}
	w.named(config, name)
	config.Labels = map[string]string{clusterv1.ClusterNameLabel: "c"}
	config.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(), Kind: kind, Name: name, UID: owner.GetUID(), Controller: new(true),
	}}
	w.Expect(admin.Create(w.t.Context(), config)).To(Succeed())
}

// Labels of the two sorts of machines.
const (
	worker       = `role: worker`
	controlPlane = `cluster.x-k8s.io/control-plane: ""`
)

// sharedBundle is a bundle whose keys are made in a millisecond. Tests that are not about making one share it.
var sharedBundle = sync.OnceValues(newBundle)

func newBundle() (*secrets.Bundle, error) {
	contract, err := version.ParseContract("v1.14")
	if err != nil {
		return nil, err
	}

	return secrets.New(machinerysecrets.NewClock(), contract, secrets.WithECDSAServiceAccountKey())
}

// bundle creates the cluster's bundle, as another Talos provider would have: without a label, an owner or a contract.
func (w *world) bundle() {
	w.t.Helper()

	bundle, err := sharedBundle()
	w.Expect(err).NotTo(HaveOccurred())
	w.secret(secrets.BundleName("c"), map[string]string{secrets.BundleKey: encode(w, bundle)})
}

func encode(w *world, bundle *secrets.Bundle) string {
	data, err := secrets.Encode(bundle)
	w.Expect(err).NotTo(HaveOccurred())

	return string(data)
}

// secret creates a Secret as a user would.
func (w *world) secret(name string, values map[string]string) {
	w.t.Helper()
	w.Expect(admin.Create(w.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, StringData: values,
	})).To(Succeed())
}

// config reads a TalosConfig.
func (w *world) config(name string) *bootstrapv1.TalosConfig {
	w.t.Helper()

	config := &bootstrapv1.TalosConfig{}
	w.get(config, name)

	return config
}

// ready waits until the TalosConfig is ready, and returns its data Secret.
func (w *world) ready(name string) *corev1.Secret {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		config := &bootstrapv1.TalosConfig{}
		g.Expect(admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, config)).To(Succeed())
		g.Expect(conditions.IsTrue(config, bootstrapv1.TalosConfigReadyCondition)).To(BeTrue(), "%s", describe(config))
		g.Expect(ptr.Deref(config.Status.Initialization.DataSecretCreated, false)).To(BeTrue())
	}).Should(Succeed())

	secret := &corev1.Secret{}
	w.get(secret, name)

	return secret
}

// condition waits until the condition is false for the reason, and returns its message.
func (w *world) condition(name, conditionType, reason string, message ...types.GomegaMatcher) string {
	w.t.Helper()

	var got string

	w.Eventually(func(g Gomega) {
		config := &bootstrapv1.TalosConfig{}
		g.Expect(admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, config)).To(Succeed())

		condition := conditions.Get(config, conditionType)
		g.Expect(condition).NotTo(BeNil(), "%s", describe(config))
		g.Expect(condition.Status).To(Equal(metav1.ConditionFalse), "%s", describe(config))
		g.Expect(condition.Reason).To(Equal(reason), "%s", describe(config))
		g.Expect(condition.Message).To(And(message...))
		g.Expect(conditions.IsFalse(config, bootstrapv1.TalosConfigReadyCondition)).To(BeTrue(), "%s", describe(config))
		got = condition.Message
	}).Should(Succeed())

	return got
}

func describe(config *bootstrapv1.TalosConfig) string {
	lines := make([]string, 0, len(config.Status.Conditions))
	for _, condition := range config.Status.Conditions {
		lines = append(lines, fmt.Sprintf("%s=%s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message))
	}

	return strings.Join(lines, "\n")
}

// owner is the reference to the TalosConfig that its data Secret must have.
func ownerOf(config *bootstrapv1.TalosConfig) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: bootstrapv1.GroupVersion.String(), Kind: "TalosConfig", Name: config.Name, UID: config.UID, Controller: new(true),
	}
}

// clusterOwner is the reference to the Cluster that its secrets must have.
func (w *world) clusterOwner() metav1.OwnerReference {
	w.t.Helper()

	owner := &clusterv1.Cluster{}
	w.get(owner, "c")

	return metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: owner.Name, UID: owner.UID}
}

// forCluster is a TalosConfig of a cluster without an owner, as it is before Cluster API has set one.
func forCluster(namespace, cluster string) *bootstrapv1.TalosConfig {
	return &bootstrapv1.TalosConfig{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: cluster + "-1", Labels: map[string]string{clusterv1.ClusterNameLabel: cluster},
	}}
}
