// SPDX-License-Identifier: Apache-2.0

// Package setup reaches into the other provider.
package setup

import "github.com/maesh-dev/ichor/bootstrap" // want "depguard: .*the two providers never import each other"

// Name is not its own.
const Name = bootstrap.Name
