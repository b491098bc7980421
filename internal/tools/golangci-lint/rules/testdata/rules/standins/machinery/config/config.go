// SPDX-License-Identifier: Apache-2.0

// Package config stands in for the real one.
package config

// Provider stands in for the real one.
type Provider interface{ Bytes() ([]byte, error) }
