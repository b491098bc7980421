// SPDX-License-Identifier: Apache-2.0

// Package webhooks are the validating webhooks of the bootstrap provider. They set nothing: what is not said stays unsaid, so that the
// topology controller's dry runs compare what users wrote.
//
// What is looked for is in package validation, and how it is told in package validating; here is what an update may change. The manager's
// setup imports it.
// It is not pure.
package webhooks
