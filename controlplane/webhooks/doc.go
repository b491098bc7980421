// SPDX-License-Identifier: Apache-2.0

// Package webhooks are the validating webhooks of the control-plane provider. They set nothing: what is not said stays unsaid, so that the
// topology controller's dry runs compare what users wrote. The rules of the schema hold for the scale subresource too, which therefore
// needs no webhook of its own.
//
// What is looked for is in package validation, and how it is told in package validating; here is what an update may change. The manager's
// setup imports it. It is not pure.
package webhooks
