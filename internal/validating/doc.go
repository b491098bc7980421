// SPDX-License-Identifier: Apache-2.0

// Package validating is what the validating webhooks of all kinds have in common: what an object is by itself is looked at when it is
// created, what an update brings when it is updated; faults that were there before are tolerated where nothing was changed; an answer
// has a bounded length, and all looks together bounded memory. It is not pure: it answers the API server.
//
// What is looked for is in package validation. The webhooks of both providers import this package; it knows none of their kinds.
package validating
