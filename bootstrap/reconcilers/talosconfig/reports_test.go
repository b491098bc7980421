// SPDX-License-Identifier: Apache-2.0

package talosconfig_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// A TalosClusterConfig sees what is wrong with any Secret of its cluster, and that it is mended.
func TestClusterConfigSeesTheClustersSecrets(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)
	w.machine("w-1", worker, "")
	w.ready("w-1")
	w.reports("c", "SecretsBundleAvailable", "True", "Available")

	for _, name := range secrets.AuthorityNames("c") {
		secret := &corev1.Secret{}
		w.change(secret, name, func() { delete(secret.Data, "tls.key"); delete(secret.Data, "tls.crt") })
		w.reports("c", "SecretsBundleAvailable", "False", "Mismatch", ContainSubstring("Cluster c: secret "+name+`: key "tls.`))
		w.reports("c", "Ready", "False", "NotReady", ContainSubstring("delete the Secret"))
		w.delete(secret, name)
		w.reports("c", "Ready", "True", "Ready")
	}

	other, err := newBundle()
	w.Expect(err).NotTo(HaveOccurred())

	authority := &corev1.Secret{}
	w.change(authority, "c-ca", func() {
		authority.Data = map[string][]byte{"tls.crt": other.Certs.K8s.Crt, "tls.key": other.Certs.K8s.Key}
	})
	w.reports("c", "SecretsBundleAvailable", "False", "Mismatch", ContainSubstring(`secret c-ca: key "tls.crt": the certificate authority differs`))
	w.delete(authority, "c-ca")
	w.reports("c", "SecretsBundleAvailable", "True", "Available")

	// The config's own references are followed: another bundle, none, and roots that are missing.
	config := &bootstrapv1.TalosClusterConfig{}
	w.secret("other", map[string]string{"bundle": encode(w, other)})
	w.change(config, "c", func() { config.Spec.SecretsRef = &corev1.LocalObjectReference{Name: "other"} })
	w.reports("c", "SecretsBundleAvailable", "False", "Mismatch", ContainSubstring("spec.secretsRef"), ContainSubstring("other"))
	w.change(config, "c", func() { config.Spec.SecretsRef = nil })
	w.reports("c", "SecretsBundleAvailable", "True", "Available")
	w.change(config, "c", func() { config.Spec.AcceptedCAsSecretRef = &corev1.LocalObjectReference{Name: "roots"} })
	w.reports("c", "Ready", "False", "NotReady", ContainSubstring(`secret "roots" does not exist`))
	w.secret("roots", map[string]string{"talos.crt": string(other.Certs.OS.Crt)})
	w.reports("c", "Ready", "True", "Ready")
}

// The last machine that carries lost secrets goes, and with it what kept new ones from being made.
func TestLostBundleIsMadeAgainWithoutCarriers(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)
	w.machine("w-1", worker, "")
	w.ready("w-1")

	w.Eventually(func() *string {
		machine := &clusterv1.Machine{}
		w.get(machine, "w-1")

		return machine.Spec.Bootstrap.DataSecretName
	}).Should(HaveValue(Equal("w-1")))

	w.delete(&corev1.Secret{}, "c-talos")
	w.machine("w-2", worker, "")
	w.condition("w-2", bundleOK, "Missing", contains("Machine w-1")...)
	w.reports("c", "SecretsBundleAvailable", "False", "Missing", ContainSubstring("Machine w-1 of Cluster c has bootstrap data already"))

	// What is made of the bundle goes, too, or it would be taken into a new one.
	for _, name := range secrets.AuthorityNames("c") {
		w.delete(&corev1.Secret{}, name)
	}

	w.delete(&clusterv1.Machine{}, "w-1")
	w.ready("w-2")
	w.reports("c", "SecretsBundleAvailable", "True", "Available")
}

// Secrets of an earlier Cluster of the name are taken over as soon as a machine is there that carries them.
func TestLeftoversAreTakenOverWithACarrier(t *testing.T) {
	w := newWorld(t)
	w.cluster()
	w.create(clusterConfigYAML)

	bundle, err := sharedBundle()
	w.Expect(err).NotTo(HaveOccurred())

	secret := &corev1.Secret{StringData: map[string]string{secrets.BundleKey: encode(w, bundle)}}
	w.named(secret, "c-talos")
	// Of a version that the garbage collector does not know it cannot tell whether the owner is gone.
	secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: "cluster.x-k8s.io/v1beta9", Kind: "Cluster", Name: "c", UID: "before"}}
	w.Expect(admin.Create(t.Context(), secret)).To(Succeed())
	w.machine("w-1", worker, "")
	w.reports("c", "SecretsBundleAvailable", "False", "Mismatch", ContainSubstring("belongs to an earlier Cluster c"))
	w.condition("w-1", bundleOK, "Mismatch", contains("earlier Cluster")...)

	// As a restore brings it.
	w.secret("restored", map[string]string{"value": "machine: {}"})
	restored := &clusterv1.Machine{}
	w.named(restored, "restored")
	restored.Labels = map[string]string{clusterv1.ClusterNameLabel: "c"}
	restored.Spec.ClusterName = "c"
	restored.Spec.Bootstrap.DataSecretName = new("restored")
	restored.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "GenericInfrastructureMachine", Name: "restored",
	}
	w.Expect(admin.Create(t.Context(), restored)).To(Succeed())
	w.ready("w-1")
	w.reports("c", "SecretsBundleAvailable", "True", "Available")
}

// Labels of Clusters and machines decide what is targeted, and are followed on both.
func TestReportsFollowLabels(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(strings.Replace(clusterConfigYAML, "clusterName: c", "clusterSelector: {matchLabels: {site: lab}}", 1))
	w.create(strings.Replace(patchYAML, "layer: Cluster", "layer: Cluster\n  machineSelector: {matchLabels: {role: worker}}", 1))
	w.machine("w-1", worker, "")
	w.ready("w-1")
	w.counts("sysctls", 1, 0)
	w.reports("c", "SecretsBundleAvailable", "True", "Available")

	// The Cluster is no longer selected.
	owner := &clusterv1.Cluster{}
	w.change(owner, "c", func() { owner.Labels["site"] = "store" })
	w.reports("c", "SecretsBundleAvailable", "False", "NoCluster", Equal("spec.clusterSelector selects none of the 1 Clusters in namespace "+w.namespace))
	w.patchSays("sysctls", "Effective", "Unknown", "NoCluster", ContainSubstring("spec.clusterSelector selects none"))
	w.counts("sysctls", 0, 0)

	// It is again, and then the machine is not.
	w.change(owner, "c", func() { owner.Labels["site"] = "lab" })
	w.reports("c", "SecretsBundleAvailable", "True", "Available")
	w.counts("sysctls", 1, 0)

	machine := &clusterv1.Machine{}
	w.change(machine, "w-1", func() { machine.Labels["role"] = "idle" })
	w.counts("sysctls", 0, 0)
	w.patchSays("sysctls", "Effective", "Unknown", "NoMachines", Equal("Cluster c has no machine that machineSelector selects"))

	// A name that is nearly that of a Cluster, and one by reference only.
	config, patch := &bootstrapv1.TalosClusterConfig{}, &bootstrapv1.TalosConfigPatch{}
	w.change(config, "c", func() { config.Spec.ClusterSelector, config.Spec.ClusterName = nil, "cc" })
	w.reports("c", "SecretsBundleAvailable", "False", "NoCluster", ContainSubstring(`no Cluster "cc"`))
	w.change(patch, "sysctls", func() {
		patch.Spec.ClusterSelector, patch.Spec.MachineSelector = nil, nil
	})
	w.patchSays("sysctls", "Effective", "Unknown", "NoMachines", ContainSubstring("spec.patchRefs"))
}

// An object that is paused says so for its newest generation, and follows when it is unpaused.
func TestPausedReports(t *testing.T) {
	w := newWorld(t)
	w.cluster()
	w.create(clusterConfigYAML)
	w.create(patchYAML)
	w.reports("c", "Paused", "False", "NotPaused")
	w.patchSays("sysctls", "Paused", "False", "NotPaused")

	config, patch := &bootstrapv1.TalosClusterConfig{}, &bootstrapv1.TalosConfigPatch{}
	w.change(config, "c", func() {
		metav1.SetMetaDataAnnotation(&config.ObjectMeta, clusterv1.PausedAnnotation, "")
		config.Spec.Talos.Version = "v1.14.0"
	})
	w.change(patch, "sysctls", func() {
		metav1.SetMetaDataAnnotation(&patch.ObjectMeta, clusterv1.PausedAnnotation, "")
		patch.Spec.Priority = new(int32(5))
	})
	w.reports("c", "Paused", "True", "Paused", ContainSubstring("annotation"))
	w.patchSays("sysctls", "Paused", "True", "Paused", ContainSubstring("annotation"))

	w.change(config, "c", func() { delete(config.Annotations, clusterv1.PausedAnnotation) })
	w.change(patch, "sysctls", func() { delete(patch.Annotations, clusterv1.PausedAnnotation) })
	w.reports("c", "Paused", "False", "NotPaused")
	w.patchSays("sysctls", "Paused", "False", "NotPaused")
}

// The label that a move goes by is set once, not while the Cluster is paused, and not where the manager may not. Nobody fights over it.
func TestMoveLabelOfReferences(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)

	owner := &clusterv1.Cluster{}
	w.change(owner, "c", func() { owner.Spec.Paused = new(true) })
	w.secret("wireguard", map[string]string{"private": wireguardKey})
	w.create(tunnelYAML)
	w.patchSays("tunnel", "Movable", "False", "ClusterPaused", ContainSubstring("Secret wireguard: has no label"))

	secret := &corev1.Secret{}
	w.get(secret, "wireguard")
	w.Expect(secret.Labels).NotTo(HaveKey(moveLabel))

	w.change(owner, "c", func() { owner.Spec.Paused = nil })
	w.patchSays("tunnel", "Movable", "True", "Movable")
	w.get(secret, "wireguard")
	w.Expect(secret.Labels).To(HaveKey(moveLabel))

	// An operator that restores labels.
	w.change(secret, "wireguard", func() { secret.Labels = nil })
	w.patchSays("tunnel", "Movable", "False", "LabelRemoved", ContainSubstring("set it where the object comes from"))
	w.Expect(labelWrites(w)).To(Equal(1))
	w.change(secret, "wireguard", func() { secret.Labels = map[string]string{"again": "1"} })
	w.patchSays("tunnel", "Ready", "True", "Ready")

	// The rights of this installation leave ConfigMaps out.
	w.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: nfs}, data: {nfsmount.conf: 'nfsvers=4.1'}}")
	w.create(strings.NewReplacer("name: tunnel", "name: nfs", "kind: WireguardConfig", "kind: EtcFileConfig",
		"wireguardConfig: {name: wg0, privateKeySecretRef: {name: wireguard, key: private}, listenPort: 51820}",
		"etcFileConfig: {name: nfsmount.conf, mode: 420, contentsFrom: {configMapKeyRef: {name: nfs, key: nfsmount.conf}}}",
	).Replace(tunnelYAML))
	w.patchSays("nfs", "Movable", "False", "LabelRefused", ContainSubstring("ConfigMap nfs: has no label"), ContainSubstring("Forbidden"))
	w.patchSays("nfs", "Ready", "True", "Ready")

	config := &corev1.ConfigMap{}
	w.change(config, "nfs", func() { config.Labels = map[string]string{moveLabel: ""} })
	w.patchSays("nfs", "Movable", "True", "Movable")
	w.Expect(labelWrites(w)).To(Equal(1))
}

func labelWrites(w *world) (writes int) {
	for _, request := range traffic.in(w.namespace) {
		if request == "PATCH secrets/wireguard" {
			writes++
		}
	}

	return writes
}

// A machine whose contract changes is rendered anew for the report.
func TestPatchFollowsTheContract(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)
	w.create(patchYAML)
	// Kernel arguments have a place in the older contract only.
	w.machine("w-1", worker, `configContract: v1.13
  install: {disk: /dev/sda, image: "factory.talos.dev/metal-installer/x:v1.14.1", extraKernelArgs: [quiet]}`)
	w.ready("w-1")
	w.counts("sysctls", 1, 0)
	w.patchSays("sysctls", "Valid", "True", "Valid")

	// The data Secret says which contract its machine has been given.
	data := &corev1.Secret{}
	w.change(data, "w-1", func() { data.Annotations[bootstrapv1.ConfigContractAnnotation] = "v1.14" })
	w.patchSays("sysctls", "Valid", "False", "MachinesNotRendered", ContainSubstring("config contract v1.14 has no place for kernel arguments"))
}

// Text of any script and lists as long as may be are reported, and a condition has room for what is said of them.
func TestReportsOfUnusualText(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)
	w.machine("w-1", worker, "")

	patch := &bootstrapv1.TalosConfigPatch{}
	w.named(patch, strings.Repeat("n", 253))

	documents := make([]string, 128)
	for i := range documents {
		documents[i] = fmt.Sprintf("{kind: SysctlConfig, sysctlConfig: {params: {kernel.x%d: '節🦀ü%d'}}}", i, i)
	}

	w.create(fmt.Sprintf("{apiVersion: bootstrap.ichor.maesh.dev/v1alpha1, kind: TalosConfigPatch, metadata: {name: %s, labels: {%s: %s}}, "+
		"spec: {layer: Cluster, clusterName: c, documents: [%s]}}",
		patch.Name, strings.Repeat("k", 63), strings.Repeat("v", 63), strings.Join(documents, ",")))
	w.counts(patch.Name, 1, 0)
	w.patchSays(patch.Name, "Ready", "True", "Ready")

	// As many faults as there can be, each as long as it can be.
	for i := range documents {
		documents[i] = fmt.Sprintf("{kind: WireguardConfig, wireguardConfig: {name: wg%d, privateKeySecretRef: {name: %s, key: %s}}}",
			i, strings.Repeat("s", 253), strings.Repeat("k", 253))
	}

	w.create(fmt.Sprintf("{apiVersion: bootstrap.ichor.maesh.dev/v1alpha1, kind: TalosConfigPatch, metadata: {name: faults}, "+
		"spec: {layer: Cluster, clusterName: c, documents: [%s]}}", strings.Join(documents, ",")))
	w.patchSays("faults", "Valid", "False", "Invalid", ContainSubstring("does not exist"), ContainSubstring("more"))

	// One that is deleted while it is reported on leaves nothing behind, and the others recover.
	machine := &clusterv1.Machine{}
	w.change(machine, "w-1", func() { metav1.SetMetaDataLabel(&machine.ObjectMeta, "a", "b") })
	w.delete(&bootstrapv1.TalosConfigPatch{}, "faults")
	w.patchSays(patch.Name, "Valid", "True", "Valid")
	w.patchSays(patch.Name, "Effective", "True", "Effective")
}

// Two managers that report at once come to one result, and then write no more.
func TestTwoManagersReport(t *testing.T) {
	second := &requests{}
	stop, err := startManager(context.WithoutCancel(t.Context()), second)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	t.Cleanup(func() { NewWithT(t).Expect(stop()).To(Succeed()) })

	w := newWorldAlone(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)
	w.create(tunnelYAML)
	w.secret("wireguard", map[string]string{"private": wireguardKey})
	w.machine("w-1", worker, "")
	w.ready("w-1")
	w.counts("tunnel", 1, 0)
	w.patchSays("tunnel", "Ready", "True", "Ready")
	w.patchSays("tunnel", "Movable", "True", "Movable")
	w.reports("c", "SecretsBundleAvailable", "True", "Available")

	written := func() int { return len(traffic.in(w.namespace)) + len(second.in(w.namespace)) }

	// Nothing is left to be said once it has been quiet for longer than changes are gathered.
	before := -1
	w.Eventually(func() bool {
		now := written()
		same := now == before
		before = now

		return same
	}, patience, 4*settle).Should(BeTrue())

	patch := &bootstrapv1.TalosConfigPatch{}
	w.get(patch, "tunnel")
	w.Expect(conditions.IsTrue(patch, "Effective")).To(BeTrue())
	w.Expect(ptr.Deref(patch.Status.Machines.Selected, 0)).To(Equal(int32(1)))

	w.Consistently(written, 4*settle).Should(Equal(before))
	w.Expect(admin.Get(t.Context(), client.ObjectKeyFromObject(patch), patch)).To(Succeed())
}
