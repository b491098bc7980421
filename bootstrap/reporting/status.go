// SPDX-License-Identifier: Apache-2.0

package reporting

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"
	capicontroller "sigs.k8s.io/cluster-api/util/controller"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/internal/consistency"
)

// conflictPause is how long to wait for the cache after somebody else has written first.
const conflictPause = time.Second

// Condition returns a condition for conditions.Set, which knows its generation and time.
func Condition(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message}
}

// Object is one with conditions.
type Object interface {
	client.Object
	conditions.Setter
}

// SetPaused sets the Paused condition of an object that can be paused by its annotation only, and says whether it is. Cluster API's own
// function writes at once, and so twice for a new object. A Cluster that is paused stops no report: several may be targeted.
func SetPaused(object Object, kind string) bool {
	if annotations.HasPaused(object) {
		conditions.Set(object, Condition(clusterv1.PausedCondition, metav1.ConditionTrue, clusterv1.PausedReason,
			fmt.Sprintf("%s has the %s annotation", kind, clusterv1.PausedAnnotation)))

		return true
	}

	conditions.Set(object, Condition(clusterv1.PausedCondition, metav1.ConditionFalse, clusterv1.NotPausedReason, ""))

	return false
}

// Writer writes the status of objects of a kind.
type Writer struct {
	Client client.StatusClient
	Kind   capicontroller.GroupVersionKindType

	// Deferrer has the next reconcile see what this one has written. One that sees the status of before may find nothing to write, and what was
	// written in between would stay: a change of the status alone wakes nobody.
	Deferrer consistency.Deferrer
}

// Write writes the status of an object, if it has changed, in one patch. When somebody else has written in the meantime, nothing is, and
// the result says when to look again. That the object is gone is no error.
func (w Writer) Write(ctx context.Context, before, now client.Object) (ctrl.Result, error) {
	if equality.Semantic.DeepEqual(before, now) {
		return ctrl.Result{}, nil
	}

	err := w.Client.Status().Patch(ctx, now, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))

	switch {
	case err == nil:
		w.Deferrer.DeferNextReconcileUntilCacheUpToDate(now, w.Kind, now.GetResourceVersion())

		return ctrl.Result{}, nil
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: conflictPause}, nil
	}

	return ctrl.Result{}, fmt.Errorf("patch the status: %w", err)
}
