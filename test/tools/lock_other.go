// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package tools

import (
	"context"
	"errors"
	"fmt"
)

// lockFile has no counterpart here: the test world runs on Unix systems.
func lockFile(context.Context, string, func()) (func(), error) {
	return nil, fmt.Errorf("test tools are built on Unix systems only: %w", errors.ErrUnsupported)
}
