// SPDX-License-Identifier: Apache-2.0

// Package talossim belongs to the test world, which may import all.
package talossim

import "github.com/maesh-dev/ichor/internal/storage"

// Name names it.
const Name = "talossim"

// Volume is a volume.
var Volume storage.Volume
