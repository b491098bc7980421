// SPDX-License-Identifier: Apache-2.0

// Package grpc stands in for the real one.
package grpc

// ClientConn stands in for the real one.
type ClientConn struct{}
