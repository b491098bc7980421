// SPDX-License-Identifier: Apache-2.0

// Package controllerruntime stands in for the real one.
package controllerruntime

import "sigs.k8s.io/controller-runtime/pkg/reconcile"

// Result stands in for the real one.
type Result = reconcile.Result
