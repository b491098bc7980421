// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"errors"
	"fmt"

	machinerysecrets "github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"go.yaml.in/yaml/v4"

	"github.com/maesh-dev/ichor/internal/version"
)

// Bundle is a cluster's secrets in machinery's form.
type Bundle = machinerysecrets.Bundle

// Clock tells the time that certificates are made at.
type Clock = machinerysecrets.Clock

// Option changes how a bundle is made.
type Option = machinerysecrets.Option

// WithECDSAServiceAccountKey makes a key for service accounts in a millisecond instead of about a second. Talos and Kubernetes work with
// both; some systems outside, such as IAM roles of AWS, take RSA only, so it is meant for clusters that live briefly, such as tests'.
func WithECDSAServiceAccountKey() Option {
	return machinerysecrets.WithECDSAServiceAccountKey()
}

// New makes the secrets of a new cluster, for configs of the given contract.
func New(clock Clock, contract version.Contract, options ...Option) (*Bundle, error) {
	if contract.IsZero() {
		return nil, errors.New("secrets bundle: the config contract must be known")
	}

	bundle, err := machinerysecrets.NewBundle(clock, contract.Machinery(), options...)
	if err != nil {
		return nil, fmt.Errorf("secrets bundle: %w", err)
	}

	return bundle, nil
}

// Empty is a bundle without any secret, for Adopt to tell whether it can take what users supply into one.
func Empty(clock Clock) *Bundle {
	return &Bundle{Clock: clock, Certs: &machinerysecrets.Certs{}}
}

// Encode returns the bundle as YAML, in the form of `talosctl gen secrets` and of the existing providers.
func Encode(bundle *Bundle) ([]byte, error) {
	data, err := yaml.Marshal(bundle)
	if err != nil {
		// The cause may quote what it could not encode.
		return nil, errors.New("secrets bundle: cannot be encoded")
	}

	return data, nil
}
