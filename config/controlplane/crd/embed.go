// SPDX-License-Identifier: Apache-2.0

// Package crd carries the control-plane provider's CustomResourceDefinitions, so that programs can check manifests as the API
// server does, without one. It is data: it imports nothing, and the command line imports it.
package crd

import (
	"embed"
	"io/fs"
)

//go:embed bases/*.yaml
var bases embed.FS

// Bases holds one CustomResourceDefinition in each file under "bases", in YAML.
func Bases() fs.FS { return bases }
