// SPDX-License-Identifier: Apache-2.0

// Package reconcilers breaks the rules for reconcilers.
package reconcilers

import (
	"errors"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/maesh-dev/ichor/controlplane"  // want "depguard: .*the two providers never import each other"
	"github.com/maesh-dev/ichor/test/talossim" // want "depguard: .*shipped code does not depend on the test world"
)

var errGone = errors.New("gone")

// Reconcile sleeps and requeues without a reason.
func Reconcile(err error) (ctrl.Result, error) {
	time.Sleep(time.Second) // want "forbidigo: .*time.Sleep.*return RequeueAfter"
	if err == errGone {     // want "errorlint: comparing with == will fail on wrapped errors"
		return ctrl.Result{}, fmt.Errorf("%s: %v", talossim.Name, err) // want "errorlint: non-wrapping format verb"
	}
	var r ctrl.Result
	r.Requeue = true // want "forbidigo: .*Requeue.*return an error or RequeueAfter"
	if controlplane.Name == "" {
		return ctrl.Result{Requeue: true}, nil // want "forbidigo: .*Requeue.*return an error or RequeueAfter"
	}
	_ = errGone.Error() //nolint:staticcheck // want "nolintlint: .*should provide explanation"
	return r, nil
}
