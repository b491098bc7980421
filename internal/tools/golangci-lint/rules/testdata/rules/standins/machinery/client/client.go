// SPDX-License-Identifier: Apache-2.0

// Package client stands in for the real one.
package client

// Client stands in for the real one.
type Client struct{}
