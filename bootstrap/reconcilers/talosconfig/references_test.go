// SPDX-License-Identifier: Apache-2.0

package talosconfig_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

// tunnelYAML is a patch whose document has its private key in a Secret.
const tunnelYAML = `
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosConfigPatch
metadata: {name: tunnel}
spec:
  layer: Cluster
  clusterSelector: {matchLabels: {site: lab}}
  documents:
  - kind: WireguardConfig
    wireguardConfig: {name: wg0, privateKeySecretRef: {name: wireguard, key: private}, listenPort: 51820}
`

const wireguardKey = "yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk="

// A machine waits for the Secret that a patch refers to, and then for its key, and says so each time.
func TestReferencesOfPatches(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)
	w.create(tunnelYAML)
	w.machine("w-1", worker, "")

	const at = "Cluster layer: TalosConfigPatch tunnel spec.documents[0]: WireguardConfig: /privateKeySecretRef: "

	w.condition("w-1", rendered, "InvalidReference", Equal(at+`secret "wireguard" does not exist in the namespace: create it`))

	w.secret("wireguard", map[string]string{"public": wireguardKey})
	w.condition("w-1", rendered, "InvalidReference", Equal(at+`secret "wireguard" has no key "private": add it`))

	secret := &corev1.Secret{}
	w.change(secret, "wireguard", func() { secret.Data["private"] = []byte("none-of-the-keys-of-wireguard") })
	w.condition("w-1", rendered, "ValidationFailed", And(ContainSubstring("WireguardConfig/wg0"), Not(ContainSubstring("none-of-the-keys"))))

	w.change(secret, "wireguard", func() { secret.Data["private"] = []byte(wireguardKey + "\n") })
	w.Expect(string(w.ready("w-1").Data["value"])).To(ContainSubstring("privateKey: " + wireguardKey + "\n"))
	w.Expect(w.config("w-1").Status.Inputs).To(ContainElement(bootstrapv1.RenderedInput{Kind: "Secret", Name: "wireguard", Layer: "Cluster"}))

	// What a machine has is not read again, and not rewritten.
	w.rests()

	before := len(traffic.in(w.namespace))
	w.reconcileAgain("w-1")
	w.Expect(traffic.in(w.namespace)[before:]).To(BeEmpty())
}

// A machine waits for a ConfigMap too.
func TestConfigMapsOfPatches(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)
	w.create(strings.NewReplacer(
		"kind: WireguardConfig", "kind: EtcFileConfig",
		"wireguardConfig: {name: wg0, privateKeySecretRef: {name: wireguard, key: private}, listenPort: 51820}",
		"etcFileConfig: {name: nfsmount.conf, mode: 420, contentsFrom: {configMapKeyRef: {name: nfs, key: nfsmount.conf}}}",
	).Replace(tunnelYAML))
	w.machine("w-1", worker, "")

	w.condition("w-1", rendered, "InvalidReference", ContainSubstring(`/contentsFrom: ConfigMap "nfs" does not exist in the namespace: create it`))

	w.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: nfs}, data: {nfsmount.conf: 'nfsvers=4.1'}}")
	w.Expect(string(w.ready("w-1").Data["value"])).To(ContainSubstring("nfsvers=4.1"))
	w.Expect(w.config("w-1").Status.Inputs).To(ContainElement(bootstrapv1.RenderedInput{Kind: "ConfigMap", Name: "nfs", Layer: "Cluster"}))
}
