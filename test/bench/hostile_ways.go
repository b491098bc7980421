// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/test/scale"
)

// way is one in which a patch is answered: what is sent for a spec, and to whom. It returns the status.
type way struct {
	name string
	body func(spec string) []byte
	ask  func(ctx context.Context, body []byte) (int, error)
}

// plainVersion is that of a kind with the name of the patches and without a schema.
var plainVersion = schema.GroupVersion{Group: "plain.bench.test", Version: "v1"}

func plainKind() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "talosconfigpatches." + plainVersion.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: plainVersion.Group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "talosconfigpatches", Singular: "talosconfigpatch", Kind: "TalosConfigPatch", ListKind: "TalosConfigPatchList",
			},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: plainVersion.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)},
				},
			}},
		},
	}
}

func hostilePatch(spec string) []byte { return patchOf(bootstrapv1.GroupVersion, spec) }

func plainPatch(spec string) []byte { return patchOf(plainVersion, spec) }

func patchOf(version schema.GroupVersion, spec string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":"TalosConfigPatch","metadata":{"name":"hostile"},"spec":%s}`, version, spec)
}

// create creates a patch at the API server.
func (b *hostileBench) create(ctx context.Context, patch []byte) (int, error) {
	return b.createAt(ctx, b.url, patch)
}

// createPlain creates an object of the kind without a schema.
func (b *hostileBench) createPlain(ctx context.Context, patch []byte) (int, error) {
	return b.createAt(ctx, b.plainURL, patch)
}

// createAt creates an object.
func (b *hostileBench) createAt(ctx context.Context, url string, object []byte) (int, error) {
	code, text, err := b.post(ctx, url, object)
	if err != nil {
		return 0, err
	}

	switch code {
	case http.StatusCreated, http.StatusUnprocessableEntity, http.StatusForbidden, http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return code, nil
	default:
		return 0, fmt.Errorf("answered with %d: %.300s", code, text)
	}
}

// remove removes what was created.
func (b *hostileBench) remove(ctx context.Context, code int) error {
	if code != http.StatusCreated {
		return nil
	}

	var errs []error

	for _, url := range []string{b.url, b.plainURL} {
		_, _, err := b.request(ctx, http.MethodDelete, url+"/hostile", nil)
		errs = append(errs, err)
	}

	return errors.Join(errs...)
}

// review is the question whether a patch may be created.
func (b *hostileBench) review(spec string) []byte {
	return scale.Review(b.namespace, "hostile", hostilePatch(spec))
}

// ask asks the manager.
func (b *hostileBench) ask(ctx context.Context, review []byte) (int, error) {
	allowed, err := b.world.Ask(ctx, b.webhook, review)
	if allowed {
		return http.StatusOK, err
	}

	return http.StatusUnprocessableEntity, err
}

func (b *hostileBench) post(ctx context.Context, url string, object []byte) (int, []byte, error) {
	return b.request(ctx, http.MethodPost, url, object)
}

func (b *hostileBench) request(ctx context.Context, method, url string, body []byte) (code int, text []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}

	request.Header.Set("Content-Type", "application/json")

	response, err := b.http.Do(request)
	if err != nil {
		return 0, nil, err
	}

	defer func() { err = errors.Join(err, response.Body.Close()) }()

	text, err = io.ReadAll(response.Body)

	return response.StatusCode, text, err
}
