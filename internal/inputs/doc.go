// SPDX-License-Identifier: Apache-2.0

// Package inputs reads what the machine config of a machine is rendered from, for every reconciler that renders. It is not
// pure: it reads from the caches of the management cluster and, of what users refer to by name, live. It writes nothing.
// Reconcilers of both providers and their setup import it.
//
// A read has two halves. Observe asks the caches alone: which TalosClusterConfig, TalosStorage and TalosConfigPatches concern
// the machine, and in which version. Its Fingerprint tells whether anything that goes into the config has changed since;
// while it stays the same, nothing has to be read live or rendered. Resolve then reads the Secrets and ConfigMaps that are referred to:
// their values are in no cache.
package inputs
