// SPDX-License-Identifier: Apache-2.0

// Package clustersecrets keeps the Secrets that a cluster's trust rests on in the management cluster: the bundle, the certificate
// authorities that others read, and the talosconfig. It is not pure: it reads and writes Secrets. Reconcilers of both providers may import
// it; what the Secrets hold is internal/secrets' matter.
//
// Whoever comes first makes the bundle, in one create: of two that try, one meets the other's Secret and takes that. Everything else
// follows from the bundle, whoever makes it.
//
//	keeper.go       what is kept with, what a fault is, reading
//	bundle.go       the bundle: found, made once, opened
//	derived.go      the Secrets that are made of the bundle
//	look.go         what is wrong, as the caches know it
//	check.go        a look at all of it that writes nothing
//	metadata.go     owner and labels
//	refusal.go      what the API server says to a write
//	talosconfig.go  renewal and rotation of the administrator's certificate
//	carriers.go     who carries secrets that must not be lost
//	cache.go        what has been decoded and proved
//
// A look at everything comes before the first write: what is wrong with one Secret leaves the others as they are.
package clustersecrets
