// SPDX-License-Identifier: Apache-2.0

package talosconfig_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
)

const registryPassword = "correct-horse-battery-staple"

const registryYAML = `
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosClusterConfig
metadata: {name: c}
spec:
  clusterName: c
  talos: {version: v1.14.1}
  registries:
  - host: registry.example.com
    username: puller
    authSecretRef: {name: registry}
`

const patchYAML = `
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosConfigPatch
metadata: {name: sysctls}
spec:
  layer: Cluster
  clusterSelector: {matchLabels: {site: lab}}
  documents:
  - kind: SysctlConfig
    sysctlConfig: {params: {vm.max_map_count: "262144"}}
`

// The whole way: a cluster without anything but its Machines gets its secrets made, each Machine its config, and Cluster
// API takes the names of the data Secrets over.
// contract: the data Secret has the name, label, type, owner and key that the infrastructure provider looks for.
func TestMachinesGetTheirConfigs(t *testing.T) {
	w := newWorld(t)
	w.secret("registry", map[string]string{"password": registryPassword})
	w.cluster()
	w.create(registryYAML)
	w.create(patchYAML)
	w.machine("cp-1", controlPlane, "")
	w.machine("w-1", worker, "")

	for name, machineType := range map[string]string{"cp-1": "controlplane", "w-1": "worker"} {
		secret := w.ready(name)
		config := w.config(name)

		w.Expect(secret.Type).To(Equal(clusterv1.ClusterSecretType))
		w.Expect(secret.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "c"))
		w.Expect(secret.OwnerReferences).To(ConsistOf(ownerOf(config)))
		w.Expect(secret.Annotations).To(HaveKeyWithValue(bootstrapv1.ConfigContractAnnotation, "v1.14"))
		w.Expect(secret.Data).To(HaveLen(1))

		rendered, err := configloader.NewFromBytes(secret.Data["value"])
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(rendered.Machine().Type().String()).To(Equal(machineType))
		w.Expect(string(secret.Data["value"])).To(And(ContainSubstring(registryPassword), ContainSubstring("vm.max_map_count")))

		status := config.Status
		w.Expect(status.DataSecretName).To(Equal(name))
		w.Expect(status.ConfigContract).To(Equal("v1.14"))
		w.Expect(status.RenderedHash).To(HaveLen(64))
		w.Expect(status.ObservedGeneration).To(Equal(config.Generation))
		w.Expect(status.Inputs).To(ContainElements(
			bootstrapv1.RenderedInput{Kind: "Machine", Name: name, Generation: ptr.To[int64](1), Layer: "Base"},
			bootstrapv1.RenderedInput{Kind: "TalosClusterConfig", Name: "c", Generation: ptr.To[int64](1), Layer: "System"},
			bootstrapv1.RenderedInput{Kind: "Secret", Name: "registry", Layer: "System"},
			bootstrapv1.RenderedInput{Kind: "TalosConfigPatch", Name: "sysctls", Generation: ptr.To[int64](1), Layer: "Cluster"},
		))

		w.Eventually(func(g Gomega) {
			machine := &clusterv1.Machine{}
			g.Expect(admin.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, machine)).To(Succeed())
			g.Expect(machine.Spec.Bootstrap.DataSecretName).To(HaveValue(Equal(name)))
		}).Should(Succeed())
	}

	// The cluster's own secrets belong to the Cluster, which a move follows, and fit each other.
	bundleSecret := &corev1.Secret{}
	w.get(bundleSecret, "c-talos")

	bundle, pinned, err := secrets.FromSecret(bundleSecret, nil)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(pinned.String()).To(Equal("v1.14"))

	for _, name := range []string{"c-talos", "c-ca", "c-etcd", "c-proxy", "c-sa", "c-talosconfig"} {
		secret := &corev1.Secret{}
		w.get(secret, name)
		w.Expect(secret.OwnerReferences).To(ConsistOf(w.clusterOwner()), name)
		w.Expect(secret.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "c"), name)
		w.Expect(secret.Type).To(Equal(clusterv1.ClusterSecretType), name)
		w.Expect(secrets.CheckSupplied(bundle, "c", secret)).To(Succeed(), name)
	}
}

// events returns the reasons of the events about an object.
func (w *world) events(name string) func() []string {
	return func() []string {
		list := &eventsv1.EventList{}
		if err := admin.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			return nil
		}

		var reasons []string

		for _, event := range list.Items {
			if event.Regarding.Name == name {
				reasons = append(reasons, event.Reason)
			}
		}

		return reasons
	}
}

// A TalosConfig with everything it needs costs three writes: Cluster API's Paused condition, the Secret, the status.
// Nothing costs anything after that.
func TestWrites(t *testing.T) {
	w := newWorldAlone(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)
	w.machine("first", worker, "")
	w.ready("first")
	w.rests()

	w.create(`
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {name: second, labels: {cluster.x-k8s.io/cluster-name: c}}
spec:
  clusterName: c
  version: v1.36.1
  bootstrap:
    configRef: {apiGroup: bootstrap.ichor.maesh.dev, kind: TalosConfig, name: second}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: GenericInfrastructureMachine, name: second}
`)

	before := len(traffic.in(w.namespace))
	w.ownedConfig("second", "Machine", &clusterv1.Machine{})
	w.ready("second")

	w.Expect(traffic.in(w.namespace)[before:]).To(Equal([]string{
		"PATCH talosconfigs/second/status",
		// What is there live: the caches may not have seen it yet.
		"GET talosclusterconfigs",
		"GET talosstorages",
		"GET talosconfigpatches",
		"POST secrets",
		"PATCH talosconfigs/second/status",
	}))

	before = len(traffic.in(w.namespace))

	w.reconcileAgain("first")
	w.reconcileAgain("second")
	w.Expect(traffic.in(w.namespace)[before:]).To(BeEmpty(), "nothing changed, so nothing is read live or written")
}

// rests waits until the manager has sent nothing for longer than changes are gathered: others than the TalosConfigs' reconciler look at Secrets that have just been made.
func (w *world) rests() {
	w.t.Helper()

	last := -1

	w.Eventually(func() int {
		before := last
		last = len(traffic.in(w.namespace))

		return last - before
	}, patience, 4*settle).Should(BeZero())
}

// reconcileAgain makes the manager reconcile a TalosConfig of which nothing that matters has changed, and waits until it has.
func (w *world) reconcileAgain(name string) {
	w.t.Helper()

	const again = "test.example.com/again"

	// One event may be answered by a reconcile that had begun before it.
	for range 2 {
		before := logs.size()
		reconciled := func() bool {
			for line := range strings.Lines(logs.since(before)) {
				if strings.Contains(line, "Reconcile successful") && strings.Contains(line, w.namespace+"/"+name+"\"") {
					return true
				}
			}

			return false
		}
		config := &bootstrapv1.TalosConfig{}
		w.change(config, name, func() {
			metav1.SetMetaDataAnnotation(&config.ObjectMeta, again, config.Annotations[again]+"again ")
		})
		w.Eventually(reconciled).Should(BeTrue())
	}
}

// A MachinePool's TalosConfig gets one config for all instances, of the machine template's version and labels.
// contract: a MachinePool owns a TalosConfig too.
func TestMachinePool(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)
	w.create(poolYAML)

	pool := &clusterv1.MachinePool{}
	w.ownedConfig("pool", "MachinePool", pool)

	w.Expect(string(w.ready("pool").Data["value"])).To(ContainSubstring("node.cluster.x-k8s.io/pool: spot"))
	w.Expect(w.config("pool").Status.Inputs).To(ContainElement(
		bootstrapv1.RenderedInput{Kind: "MachinePool", Name: "pool", Generation: new(pool.Generation), Layer: "Base"}))
}
