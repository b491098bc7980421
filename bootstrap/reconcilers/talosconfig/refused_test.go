// SPDX-License-Identifier: Apache-2.0

package talosconfig_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	admissionapi "k8s.io/api/admission/v1"
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

	w.machine("w-1", worker, "")
	w.condition("w-1", rendered, "ValidationFailed", contains("a Secret holds 1048576 at most", "make its largest inputs smaller: TalosConfigPatch large-0 (262")...)
	w.condition("w-1", dataSecret, "NotAvailable")

	w.delete(&bootstrapv1.TalosConfigPatch{}, "large-1")
	w.ready("w-1")
}

// What an admission policy says of the Secret is shown, but for what it quotes of the config.
func TestSecretRefused(t *testing.T) {
	t.Parallel()

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

// A webhook that says no without a code or a reason is shown as what it is, and so is one that does not answer: the wait that was over is not
// said to go on.
func TestSecretRefusedByWebhook(t *testing.T) {
	t.Parallel()

	for name, at := range map[string]struct{ secret, conditionType string }{
		"the machine's Secret": {"w-1", dataSecret},
		"the cluster's Secret": {"c-ca", bundleOK},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.bundle()
			w.create(strings.Replace(clusterYAML, "  controlPlaneEndpoint: {host: c.example.com, port: 6443}\n", "", 1))
			w.provision()
			w.create(clusterConfigYAML)

			hook := w.webhook(at.secret)
			w.machine("w-1", worker, "")
			w.condition("w-1", dataSecret, "WaitingForControlPlaneEndpoint")

			endpoint := &clusterv1.Cluster{}
			w.change(endpoint, "c", func() {
				endpoint.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "c.example.com", Port: 6443}
			})
			w.condition("w-1", at.conditionType, "NotAvailable", contains(at.secret, "he API server refuses", "no team, no Secret")...)
			w.condition("w-1", dataSecret, "NotAvailable")
			w.Eventually(w.events("w-1")).Should(ContainElement("NotAvailable"))

			hook.answer(http.StatusServiceUnavailable)
			w.condition("w-1", dataSecret, "NotAvailable", ContainSubstring("Secret w-1 is not made yet: the last try failed"))

			hook.answer(http.StatusOK)
			w.ready("w-1")
		})
	}
}

// webhook is one that is asked about a Secret.
type webhook struct{ code atomic.Int32 }

// answer has the webhook fail with the code, or allow everything with that of success.
func (h *webhook) answer(code int32) { h.code.Store(code) }

func (h *webhook) ServeHTTP(out http.ResponseWriter, request *http.Request) {
	review := &admissionapi.AdmissionReview{}
	if err := json.NewDecoder(request.Body).Decode(review); err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)

		return
	}

	switch code := int(h.code.Load()); code {
	case 0:
		review.Response = &admissionapi.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: "no team, no Secret"}}
	case http.StatusOK:
		review.Response = &admissionapi.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	default:
		http.Error(out, "later", code)

		return
	}

	review.Request = nil
	_ = json.NewEncoder(out).Encode(review) // who has gone reads no answer
}

// webhook has the API server ask a webhook about the Secret of the world, and waits until it does. It denies it.
func (w *world) webhook(secret string) *webhook {
	w.t.Helper()

	hook := &webhook{}
	server := httptest.NewTLSServer(hook)
	w.t.Cleanup(server.Close)

	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	configuration := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name:                    "team.example.com",
			ClientConfig:            admissionv1.WebhookClientConfig{URL: &server.URL, CABundle: authority},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace}},
			MatchConditions:         []admissionv1.MatchCondition{{Name: "secret", Expression: fmt.Sprintf("object.metadata.name == %q", secret)}},
			SideEffects:             new(admissionv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}},
			}},
		}},
	}

	w.Expect(admin.Create(w.t.Context(), configuration)).To(Succeed())
	w.t.Cleanup(func() { _ = admin.Delete(context.Background(), configuration) }) // ends with the API server

	w.Eventually(func() error {
		return admin.Create(w.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: secret}}, client.DryRunAll)
	}).Should(MatchError(ContainSubstring("no team, no Secret")))

	return hook
}
