// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
)

// webhookPath is where a manager looks at TalosConfigPatches.
const webhookPath = "/validate-bootstrap-ichor-maesh-dev-v1alpha1-talosconfigpatch"

// Review is a question that an API server puts to the webhook: whether the patch, given as JSON, may be created.
func Review(namespace, name string, patch []byte) []byte {
	group, apiVersion := bootstrapv1.GroupVersion.Group, bootstrapv1.GroupVersion.Version

	review, _ := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: types.UID(name), Operation: admissionv1.Create, Namespace: namespace, Name: name,
			Kind:     metav1.GroupVersionKind{Group: group, Version: apiVersion, Kind: "TalosConfigPatch"},
			Resource: metav1.GroupVersionResource{Group: group, Version: apiVersion, Resource: "talosconfigpatches"},
			Object:   runtime.RawExtension{Raw: patch},
		},
	}) //nolint:errchkjson // the patch is JSON

	return review
}

// WebhookClient is one that the manager's webhook server is known to.
func (w *World) WebhookClient() (*http.Client, error) {
	return rest.HTTPClientFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: w.Config().CAData}})
}

// Ask asks the manager that StartManager has started, without an API server between, and returns whether it allows the patch.
func (w *World) Ask(ctx context.Context, client *http.Client, review []byte) (allowed bool, err error) {
	url := fmt.Sprintf("https://127.0.0.1:%d%s", w.webhooks.Port, webhookPath)

	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(review))
	if err != nil {
		return false, err
	}

	request.Header.Set("Content-Type", "application/json")

	response, err := client.Do(request)
	if err != nil {
		return false, err
	}

	defer func() { err = errors.Join(err, response.Body.Close()) }()

	answer := admissionv1.AdmissionReview{}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return false, fmt.Errorf("the webhook's answer: %s: %w", response.Status, err)
	}

	if answer.Response == nil || response.StatusCode != http.StatusOK {
		return false, fmt.Errorf("the webhook answers %s", response.Status)
	}

	return answer.Response.Allowed, nil
}
