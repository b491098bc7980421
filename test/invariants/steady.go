// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/maesh-dev/ichor/test/harness"
)

// RequestLog tells the requests of a user since it was asked last, as harness.RequestReader does.
type RequestLog interface {
	Next() ([]harness.Request, error)
}

// Quiet says when nothing is to do any more.
type Quiet struct {
	// Namespace in which nothing may be written.
	Namespace string

	// Requests are those of the managers, by name.
	Requests map[string]RequestLog

	// Transcript is what happened to the machines: what is told to them counts as a write. Nil: there are none.
	Transcript func() string

	// For is how long nothing may be written, and Within when that has come about at the latest.
	For, Within time.Duration
}

// writes are the verbs that change something.
var writes = []string{"create", "update", "patch", "delete", "deletecollection"}

// accounts of what happens, not of what there is: a lease is renewed, and an event tells what was done.
var accounts = []string{"events", "leases"}

// IsWrite tells whether a request changes something, or would.
func IsWrite(request harness.Request) bool {
	return slices.Contains(writes, request.Verb) && !slices.Contains(accounts, request.Resource)
}

// Steady waits until nothing is written for a while, and says what is still being written if that does not come about. A manager
// that writes what is there already, again and again, never gets there.
func Steady(ctx context.Context, q Quiet) error {
	var (
		busy       []string
		begin      = time.Now()
		quiet      = begin
		transcript string
	)

	err := wait.PollUntilContextTimeout(ctx, samplePeriod, q.Within, true, func(context.Context) (bool, error) {
		written, err := q.next()
		if err != nil {
			return false, err
		}

		if q.Transcript != nil {
			if now := q.Transcript(); now != transcript {
				if lines := strings.Split(strings.TrimSpace(now), "\n"); transcript != "" {
					written = append(written, "machines: "+lines[len(lines)-1])
				}

				transcript, quiet = now, time.Now()
			}
		}

		if len(written) > 0 {
			busy, quiet = written, time.Now()
		}

		return time.Since(quiet) >= q.For, nil
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		slices.Sort(busy)

		return fmt.Errorf("invariant steady state: in %s there were not %s without a write; the last: %s",
			time.Since(begin).Round(time.Second), q.For, strings.Join(slices.Compact(busy), "; "))
	}

	return err
}

// next are the writes since the last look.
func (q Quiet) next() ([]string, error) {
	var written []string

	for manager, log := range q.Requests {
		requests, err := log.Next()
		if err != nil {
			return nil, err
		}

		for _, request := range requests {
			if request.Namespace == q.Namespace && IsWrite(request) {
				written = append(written, fmt.Sprintf("%s: %s %s %s", manager, request.Verb, resource(request), request.Name))
			}
		}
	}

	return written, nil
}

func resource(request harness.Request) string {
	if request.Subresource == "" {
		return request.Resource
	}

	return request.Resource + "/" + request.Subresource
}
