// SPDX-License-Identifier: Apache-2.0

package invariants_test

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watchedClient tells when somebody watches.
type watchedClient struct {
	client.WithWatch

	watched chan<- struct{}
}

func (c *watchedClient) Watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	events, err := c.WithWatch.Watch(ctx, list, options...)

	select {
	case c.watched <- struct{}{}:
	default:
	}

	return events, err
}
