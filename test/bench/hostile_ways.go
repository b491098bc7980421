// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/test/scale"
)

// way is one in which a patch is answered: what is sent for a spec, and to whom. It returns the status.
type way struct {
	name string
	body func(spec string) []byte
	ask  func(ctx context.Context, body []byte) (int, error)
}

func hostilePatch(spec string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":"TalosConfigPatch","metadata":{"name":"hostile"},"spec":%s}`, bootstrapv1.GroupVersion, spec)
}

// create creates a patch at the API server.
func (b *hostileBench) create(ctx context.Context, patch []byte) (int, error) {
	code, text, err := b.post(ctx, patch, "")
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

// remove removes the patch again, if it was created.
func (b *hostileBench) remove(ctx context.Context, code int) error {
	if code != http.StatusCreated {
		return nil
	}

	_, _, err := b.request(ctx, http.MethodDelete, b.url+"/hostile", nil)

	return err
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

func (b *hostileBench) post(ctx context.Context, patch []byte, query string) (int, []byte, error) {
	return b.request(ctx, http.MethodPost, b.url+query, patch)
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
