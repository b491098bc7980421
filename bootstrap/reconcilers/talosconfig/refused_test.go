// SPDX-License-Identifier: Apache-2.0

package talosconfig_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

const largePatchYAML = `
apiVersion: bootstrap.ichor.maesh.dev/v1alpha1
kind: TalosConfigPatch
metadata: {name: large-%[1]d}
spec:
  layer: Cluster
  clusterName: c
  documents:
  - kind: Config
    config:
      machine:
        files:
        - {path: /var/etc/large-%[1]d, op: create, permissions: 420, content: "%[2]s"}
`

// A config that no Secret can hold is a fault of the inputs: it is not tried again until one of them is smaller.
func TestConfigTooLarge(t *testing.T) {
	w := newWorld(t)
	w.bundle()
	w.cluster()
	w.create(clusterConfigYAML)

	for i := range 4 {
		w.create(fmt.Sprintf(largePatchYAML, i, strings.Repeat("x", corev1.MaxSecretSize/4)))
	}

	// The manager must have seen them all before there is a machine to render: it is rendered once.
	for i := range 4 {
		w.Eventually(func() int64 {
			patch := &bootstrapv1.TalosConfigPatch{}
			w.get(patch, fmt.Sprintf("large-%d", i))

			return patch.Status.ObservedGeneration
		}).Should(BeNumerically("==", 1))
	}

	w.machine("w-1", worker, "")
	w.condition("w-1", rendered, "ValidationFailed", contains("a Secret holds 1048576 at most", "make its largest inputs smaller: TalosConfigPatch large-0 (262")...)
	w.condition("w-1", dataSecret, "NotAvailable")

	w.delete(&bootstrapv1.TalosConfigPatch{}, "large-1")
	w.ready("w-1")
}

// What an admission policy says of the Secret is shown, but for what it quotes of the config.
func TestSecretRefused(t *testing.T) {
	tests := map[string]struct{ message, want string }{
		"words":             {`"give it a team, says the policy"`, "give it a team, says the policy"},
		"words with config": {`"no good: " + string(object.data.value)`, "no good: "},
		"a part of it":      {`"no good: " + (size(object.data.value) > 200 ? string(object.data.value).substring(100, 140) : "")`, "no good"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.bundle()
			w.cluster()
			w.create(clusterConfigYAML)

			lift := w.policy(test.message)
			w.machine("w-1", worker, "")

			message := w.condition("w-1", dataSecret, "NotAvailable", contains("The API server refuses Secret w-1", test.want)...)
			w.Expect(len(message)).To(BeNumerically("<=", 1024))
			_, quoted, _ := strings.Cut(message, "no good: ")
			w.Expect(len(strings.TrimSpace(quoted))).To(BeNumerically("<", 12), "the quote is of the placeholder")
			w.Eventually(w.events("w-1")).Should(ContainElement("NotAvailable"))

			lift()
			w.ready("w-1")
		})
	}
}

// policy makes the API server refuse Secrets w-1 of the world with the message, a CEL expression. It returns what lifts it.
func (w *world) policy(message string) func() {
	w.t.Helper()

	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}},
				},
			}}},
			Validations: []admissionv1.Validation{{
				Expression:        fmt.Sprintf("object.metadata.namespace != %q || object.metadata.name != 'w-1'", w.namespace),
				MessageExpression: message,
			}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: w.namespace, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}

	w.Expect(admin.Create(w.t.Context(), policy)).To(Succeed())
	w.Expect(admin.Create(w.t.Context(), binding)).To(Succeed())

	// The API server needs a moment to take it up.
	w.Eventually(func() error {
		return admin.Create(w.t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "w-1"}, Data: map[string][]byte{"value": []byte("x")},
			Type: clusterv1.ClusterSecretType,
		}, client.DryRunAll)
	}).ShouldNot(Succeed())

	return func() {
		w.Expect(admin.Delete(w.t.Context(), binding)).To(Succeed())
		w.Expect(admin.Delete(w.t.Context(), policy)).To(Succeed())
	}
}
