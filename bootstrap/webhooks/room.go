// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// maxAtOnce is how many bytes of objects are looked at at the same time. The API server passes on any number of requests at once, each
// with an object of up to 3 MiB, and a look takes many times the object's size: without a bound, whoever may create patches could make the
// manager run out of memory. Ordinary objects have a few KiB, and never wait for each other.
const maxAtOnce = 4 << 20

// room bounds the memory of all webhooks together.
type room struct{ bytes *semaphore.Weighted }

func newRoom() *room { return &room{semaphore.NewWeighted(maxAtOnce)} }

// enter waits for room for the objects of the request, at most as long as the API server waits for the answer. The function that it
// returns gives the room back.
func (r *room) enter(ctx context.Context) (leave func(), err error) {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return nil, err
	}

	size := min(int64(len(request.Object.Raw)+len(request.OldObject.Raw)), maxAtOnce)
	if err := r.bytes.Acquire(ctx, size); err != nil {
		return nil, fmt.Errorf("too many large objects are being checked: try again: %w", err)
	}

	return func() { r.bytes.Release(size) }, nil
}
