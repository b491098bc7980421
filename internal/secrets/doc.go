// SPDX-License-Identifier: Apache-2.0

// Package secrets makes, reads and checks what a cluster's trust rests on: the Talos secrets bundle, the Secrets of Cluster API's naming
// that are made from it, and the client configuration for the Talos API.
//
// Names, keys and formats are those of the existing Talos providers, so that their clusters are taken over as they are. Nothing here
// reads or writes a cluster: a caller creates what it is given, and on a conflict reads what another made, which is how two controllers
// come to agree on one bundle.
//
// No error of this package carries a value of a secret, nor a piece of one.
//
// The package is pure but for key material: the clock is handed in, and randomness is machinery's. Reconcilers and the command line may
// import it; it imports internal/version.
package secrets
