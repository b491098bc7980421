// SPDX-License-Identifier: Apache-2.0

package talosconfig_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// fault is something wrong with the inputs of a config. The TalosConfig says what, no Secret is written, and mending it is
// noticed without any other push.
type fault struct {
	// make makes the inputs; the Cluster exists, the Machine w-1 comes after.
	make func(*world)

	// spec is more of the TalosConfig's spec.
	spec string

	conditionType, reason string
	message               []types.GomegaMatcher

	mend func(*world)
}

const (
	rendered   = bootstrapv1.TalosConfigConfigRenderedCondition
	dataSecret = bootstrapv1.TalosConfigDataSecretAvailableCondition
	bundleOK   = bootstrapv1.SecretsBundleAvailableCondition
)

const secondClusterConfigYAML = `
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosClusterConfig
metadata: {name: lab}
spec: {clusterSelector: {matchLabels: {site: lab}}}
`

const badExpressionYAML = `
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosConfigPatch
metadata: {name: volumes}
spec:
  layer: Role
  role: Worker
  clusterName: c
  documents:
  - kind: UserVolumeConfig
    userVolumeConfig:
      name: data
      provisioning: {diskSelector: {match: "disk.size >"}, minSize: 10GiB}
`

const incompleteVolumeYAML = `
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosConfigPatch
metadata: {name: volumes}
spec:
  layer: Cluster
  clusterName: c
  documents:
  - kind: UserVolumeConfig
    userVolumeConfig: {name: data}
`

func contains(texts ...string) []types.GomegaMatcher {
	matchers := make([]types.GomegaMatcher, len(texts))
	for i, text := range texts {
		matchers[i] = ContainSubstring(text)
	}

	return matchers
}

var faults = map[string]fault{
	"nothing says which contract": {
		make:          func(w *world) { w.bundle() },
		conditionType: rendered, reason: "ConfigContractUnknown",
		message: contains("TalosConfig w-1", "spec.talos.version", "spec.configContract"),
		mend:    func(w *world) { w.create(clusterConfigYAML) },
	},
	"two TalosClusterConfigs": {
		make:          func(w *world) { w.bundle(); w.create(clusterConfigYAML); w.create(secondClusterConfigYAML) },
		conditionType: rendered, reason: "AmbiguousTalosClusterConfig",
		message: contains("Cluster c", "c, lab"),
		mend:    func(w *world) { w.delete(&bootstrapv1.TalosClusterConfig{}, "lab") },
	},
	"missing Secret": {
		make:          func(w *world) { w.bundle(); w.create(registryYAML) },
		conditionType: rendered, reason: "InvalidReference",
		message: contains("TalosClusterConfig c", "registry.example.com", `secret "registry" does not exist`),
		mend:    func(w *world) { w.secret("registry", map[string]string{"password": registryPassword}) },
	},
	"missing key": {
		make: func(w *world) {
			w.bundle()
			w.create(registryYAML)
			w.secret("registry", map[string]string{"pasword": registryPassword})
		},
		conditionType: rendered, reason: "InvalidReference",
		message: contains(`secret "registry"`, `"password"`),
		mend:    changeRegistry(map[string]string{"password": registryPassword}),
	},
	"doubled key": {
		make: func(w *world) {
			w.bundle()
			w.create(registryYAML)
			w.secret("registry", map[string]string{"password": registryPassword, "identityToken": "token-" + registryPassword})
		},
		conditionType: rendered, reason: "InvalidReference",
		message: contains(`secret "registry"`, `"password"`, `"identityToken"`),
		mend:    changeRegistry(map[string]string{"password": registryPassword}),
	},
	"patch that does not exist": {
		make:          func(w *world) { w.bundle(); w.create(clusterConfigYAML) },
		spec:          `patchRefs: [{name: sysctls}]`,
		conditionType: rendered, reason: "InvalidReference",
		message: contains("TalosConfig w-1", "spec.patchRefs[0]", `TalosConfigPatch "sysctls"`),
		mend:    func(w *world) { w.create(patchYAML) },
	},
	"kernel arguments that the contract has no place for": {
		make:          func(w *world) { w.bundle(); w.create(clusterConfigYAML) },
		spec:          `install: {disk: /dev/sda, image: "factory.talos.dev/metal-installer/x:v1.14.1", extraKernelArgs: [quiet]}`,
		conditionType: rendered, reason: "RenderFailed",
		message: contains("TalosConfig w-1", "extraKernelArgs"),
		mend: func(w *world) {
			config := &bootstrapv1.TalosConfig{}
			w.change(config, "w-1", func() { config.Spec.Install.ExtraKernelArgs = nil })
		},
	},
	"patch with an expression that is none": {
		make: func(w *world) {
			w.bundle()
			w.create(clusterConfigYAML)
			w.create(badExpressionYAML)
		},
		conditionType: rendered, reason: "ValidationFailed",
		message: contains("Role layer", "TalosConfigPatch volumes", "spec.documents[0]", "UserVolumeConfig"),
		mend:    func(w *world) { w.delete(&bootstrapv1.TalosConfigPatch{}, "volumes") },
	},
	"merged config that Talos refuses": {
		make: func(w *world) {
			w.bundle()
			w.create(clusterConfigYAML)
			w.create(incompleteVolumeYAML)
		},
		conditionType: rendered, reason: "ValidationFailed",
		message: contains("TalosConfigPatch volumes", "UserVolumeConfig"),
		mend:    func(w *world) { w.delete(&bootstrapv1.TalosConfigPatch{}, "volumes") },
	},
	"foreign Secret": {
		make: func(w *world) {
			w.bundle()
			w.create(clusterConfigYAML)
			w.secret("w-1", map[string]string{"value": "version: v1alpha1"})
		},
		conditionType: dataSecret, reason: "ForeignSecret",
		message: contains("Secret w-1", "not reused"),
		mend:    func(w *world) { w.delete(&corev1.Secret{}, "w-1") },
	},
	"foreign Secret with the label": {
		make: func(w *world) {
			w.bundle()
			w.create(clusterConfigYAML)
			w.create(`{apiVersion: v1, kind: Secret, metadata: {name: w-1, labels: {cluster.x-k8s.io/cluster-name: c}}, stringData: {value: x}}`)
		},
		conditionType: dataSecret, reason: "ForeignSecret",
		message: contains("Secret w-1", "not reused"),
		mend:    func(w *world) { w.delete(&corev1.Secret{}, "w-1") },
	},
	"bundle of an initialized cluster is missing": {
		make: func(w *world) {
			w.create(clusterConfigYAML)

			owner := &clusterv1.Cluster{}
			w.changeStatus(owner, "c", func() { owner.Status.Initialization.ControlPlaneInitialized = new(true) })
		},
		conditionType: bundleOK, reason: "Missing",
		message: contains("secret c-talos does not exist", "backup"),
		mend:    func(w *world) { w.bundle() },
	},
	"bundle that is no bundle": {
		make: func(w *world) {
			w.create(clusterConfigYAML)
			w.secret("c-talos", map[string]string{"bundle": "cluster: {id: x}"})
		},
		conditionType: bundleOK, reason: "Invalid",
		message: contains("secret c-talos"),
		mend:    func(w *world) { w.delete(&corev1.Secret{}, "c-talos"); w.bundle() },
	},
	"certificate authority of another cluster": {
		make: func(w *world) {
			w.bundle()
			w.create(clusterConfigYAML)

			other, err := newBundle()
			w.Expect(err).NotTo(HaveOccurred())
			w.secret("c-ca", map[string]string{"tls.crt": string(other.Certs.K8s.Crt), "tls.key": string(other.Certs.K8s.Key)})
		},
		conditionType: bundleOK, reason: "Mismatch",
		message: contains("secret c-ca", "certificate authority"),
		mend:    func(w *world) { w.delete(&corev1.Secret{}, "c-ca") },
	},
	"contract of the cluster that is none": {
		make: func(w *world) {
			w.create(clusterConfigYAML)
			w.bundle()

			secret := &corev1.Secret{}
			w.change(secret, "c-talos", func() { secret.Annotations = map[string]string{bootstrapv1.ConfigContractAnnotation: "newest"} })
		},
		conditionType: rendered, reason: "RenderFailed",
		message: contains("Secret c-talos metadata.annotations["+bootstrapv1.ConfigContractAnnotation+"]", `config contract "newest"`),
		mend: func(w *world) {
			secret := &corev1.Secret{}
			w.change(secret, "c-talos", func() { delete(secret.Annotations, bootstrapv1.ConfigContractAnnotation) })
		},
	},
	"user's bundle does not exist": {
		make:          func(w *world) { w.create(userBundleYAML) },
		conditionType: bundleOK, reason: "Invalid",
		message: contains("TalosClusterConfig c", "spec.secretsRef", `secret "mine"`),
		mend:    func(w *world) { w.userBundle("mine") },
	},
}

func changeRegistry(values map[string]string) func(*world) {
	return func(w *world) {
		secret := &corev1.Secret{}
		w.change(secret, "registry", func() { secret.Data, secret.StringData = nil, values })
	}
}

// contract: faults are conditions with documented reasons.
func TestFaults(t *testing.T) {
	t.Parallel()

	for name, test := range faults {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cluster()
			test.make(w)
			w.machine("w-1", worker, test.spec)

			message := w.condition("w-1", test.conditionType, test.reason, test.message...)
			w.Expect(message).NotTo(ContainSubstring(registryPassword))
			w.Expect(w.config("w-1").Status.DataSecretName).To(BeEmpty())

			test.mend(w)

			secret := w.ready("w-1")
			w.Expect(secret.OwnerReferences).To(ConsistOf(ownerOf(w.config("w-1"))))
		})
	}
}

const userBundleYAML = `
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosClusterConfig
metadata: {name: c}
spec:
  clusterName: c
  talos: {version: v1.14.1}
  secretsRef: {name: mine}
`

// userBundle creates a Secret with a new bundle, and returns the bundle.
func (w *world) userBundle(name string) *secrets.Bundle {
	w.t.Helper()

	bundle, err := newBundle()
	w.Expect(err).NotTo(HaveOccurred())
	w.secret(name, map[string]string{secrets.BundleKey: encode(w, bundle)})

	return bundle
}
