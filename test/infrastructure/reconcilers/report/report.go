// SPDX-License-Identifier: Apache-2.0

// Package report writes what the provider's reconcilers have to say of an object. It is not pure.
package report

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/maesh-dev/ichor/test/infrastructure/api/v1alpha1"
)

// Patch writes what has changed in an object since helper was made. An object that is being deleted may be gone already: a cache
// shows it for a moment after its last finalizer went.
func Patch(ctx context.Context, helper *patch.Helper, object client.Object) error {
	err := helper.Patch(ctx, object, patch.WithOwnedConditions{Conditions: []string{infrav1.ReadyCondition, clusterv1.PausedCondition}})
	if err == nil || object.GetDeletionTimestamp().IsZero() {
		return err
	}

	if all, ok := errors.AsType[kerrors.Aggregate](err); ok {
		err = all
	}

	return kerrors.FilterOut(err, apierrors.IsNotFound)
}
