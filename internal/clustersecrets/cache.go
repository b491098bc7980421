// SPDX-License-Identifier: Apache-2.0

package clustersecrets

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/lru"

	"github.com/maesh-dev/ichor/internal/inputs"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
)

const (
	// maxOpenBundles bounds the decoded bundles in memory: one for each cluster that gets machines.
	maxOpenBundles = 256

	// maxProofs bounds what is remembered as proved: a few facts for each bundle.
	maxProofs = 8 * maxOpenBundles
)

// bundleCache keeps bundles decoded, by version of their Secret.
type bundleCache struct{ open *lru.Cache }

// opened is a decoded bundle, and from when all of its authorities are valid.
type opened struct {
	bundle *secrets.Bundle
	valid  time.Time
}

func newBundleCache() *bundleCache { return &bundleCache{lru.New(maxOpenBundles)} }

func (c *bundleCache) get(secret *corev1.Secret, clock secrets.Clock) (*secrets.Bundle, error) {
	found, err := c.look(secret, clock)

	return found.bundle, err
}

func (c *bundleCache) look(secret *corev1.Secret, clock secrets.Clock) (opened, error) {
	if cached, ok := c.open.Get(inputs.ContentVersion(secret)); ok {
		if found, ok := cached.(opened); ok {
			return found, nil
		}
	}

	data, ok := secret.Data[secrets.BundleKey]
	if !ok {
		return opened{}, fmt.Errorf("key %q is missing", secrets.BundleKey)
	}

	bundle, err := secrets.Decode(data, clock)
	if err != nil {
		return opened{}, fmt.Errorf("key %q: %w", secrets.BundleKey, err)
	}

	_, valid := secrets.Pending(bundle, time.Time{})
	found := opened{bundle, valid}
	c.open.Add(inputs.ContentVersion(secret), found)

	return found, nil
}

// proof is something that holds for a version of a bundle: that it is complete for a contract, or that a version of
// another Secret agrees with it.
type proof struct {
	bundle   inputs.Version
	contract version.Contract
	object   inputs.Version
}

// proofCache remembers what has been proved. Certificates and keys of a bundle are parsed once, not for every machine.
type proofCache struct{ proved *lru.Cache }

func newProofCache() *proofCache { return &proofCache{lru.New(maxProofs)} }

// once returns nil for what has been proved before, and otherwise the result of prove.
func (c *proofCache) once(p proof, prove func() error) error {
	if _, ok := c.proved.Get(p); ok {
		return nil
	}

	if err := prove(); err != nil {
		return err
	}

	c.add(p)

	return nil
}

// add remembers what is known to hold.
func (c *proofCache) add(p proof) { c.proved.Add(p, nil) }
