// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// Workers is how many requests are under way at once, and how many TalosConfigs a manager reconciles at once.
const Workers = 100

// Each calls do for 0 to n-1, with so many calls under way at once, and returns the first error.
func Each(ctx context.Context, n, workers int, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)

	for i := range n {
		if ctx.Err() != nil {
			break
		}

		group.Go(func() error { return do(ctx, i) })
	}

	return group.Wait()
}
