// SPDX-License-Identifier: Apache-2.0

package reporting

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
)

const (
	// Patience is how long looks at an object may fail before its conditions say so, and how long what they say then stays: an API server that
	// has too much to do must not be written to for every object and every try.
	Patience = 30 * time.Second

	// maxFailing bounds the objects that are remembered as failing: more than a management cluster has machines. If there were more that fail at once, each
	// would be forgotten before its next try, and nothing said of any.
	maxFailing = 1 << 15
)

// Unanswered is what is said of errors that end by themselves. It is the same for all of them: what fails may be something else each time.
const Unanswered = "the API server has not answered as it should for some time, and the manager's log says what was asked"

// timeToTell is what a look leaves of the time that Cluster API's controller gives a reconcile.
const timeToTell = 10 * time.Second

// WithTimeToTell ends a look some time before the reconcile must: what is not answered at all could never be told otherwise.
func WithTimeToTell(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}

	return context.WithDeadline(ctx, deadline.Add(-timeToTell))
}

// Failing knows since when each object could not be looked at for something that is no fault of what users have written.
type Failing struct {
	clock   clock.PassiveClock
	mu      sync.Mutex
	objects *lru.Cache
}

// failure is what is known of one object. Said is empty until its conditions say something.
type failure struct {
	since, told time.Time
	said        string
}

// NewFailing returns one that knows of no failure.
func NewFailing(clock clock.PassiveClock) *Failing {
	return &Failing{clock: clock, objects: lru.New(maxFailing)}
}

// Say is what a condition is to say of the error that a look at an object has ended with: at once that the manager lacks a right, which lasts
// until somebody gives it, and everything else when it has lasted. It is empty for what is not to be told, or not yet.
func (f *Failing) Say(object types.UID, err error) string {
	// What another has changed is looked at again at once, and a manager that ends says nothing.
	if err == nil || apierrors.IsConflict(err) || errors.Is(err, context.Canceled) {
		return ""
	}

	f.mu.Lock()
	defer f.mu.Unlock()

	now := f.clock.Now()

	cached, _ := f.objects.Get(object)
	known, ok := cached.(failure)

	if !ok {
		known = failure{since: now}
	}

	said := secrets.Denied(err)
	if said == "" && now.Sub(known.since) >= Patience {
		said = Unanswered
	}

	// Answers that differ from try to try are not followed.
	if said != known.said && (known.said == "" || said != "" && now.Sub(known.told) >= Patience) {
		known.said, known.told = said, now
	}

	f.objects.Add(object, known)

	return known.said
}

// NotRead reports with conditions of an object why it could not be looked at, when it is time to say so, and returns the error of the look, so that
// it is tried again.
func (f *Failing) NotRead(ctx context.Context, writer Writer, before, now Object, fault error, conditionTypes ...string) (ctrl.Result, error) {
	said := f.Say(now.GetUID(), fault)
	if said == "" {
		return ctrl.Result{}, fault
	}

	for _, conditionType := range conditionTypes {
		conditions.Set(now, Condition(conditionType, metav1.ConditionUnknown, bootstrapv1.NotReadReason, said))
	}

	_, err := writer.Write(ctx, before, now)

	return ctrl.Result{}, errors.Join(fault, err)
}

// Passed notes that the object could be looked at.
func (f *Failing) Passed(object types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.objects.Remove(object)
}
