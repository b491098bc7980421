// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"slices"

	"github.com/maesh-dev/ichor/internal/codegen/load"
	"github.com/maesh-dev/ichor/internal/codegen/model"
)

const machinery = "github.com/siderolabs/talos/pkg/machinery/"

// Machinery says where Talos' kinds are registered. The build list of the module in dir decides the version.
func Machinery(dir string) load.Source {
	return load.Source{
		Dir:      dir,
		Patterns: []string{machinery + "config/types/..."},
		Register: machinery + "config/internal/registry.Register",
		Types:    Talos().UpstreamTypes(),
	}
}

// Talos returns the decisions about Talos' documents.
func Talos() model.Tables {
	return model.Tables{
		Prefix:     machinery,
		Offered:    offered(),
		Denied:     denied(),
		Identity:   identity(),
		Scalars:    slices.Concat(scalars(), upstreamScalars()),
		Lists:      append(lists(), model.ListRow{Go: logs + ".VModuleConfiguration", Reason: "a plain list in JSON"}),
		Maps:       append(maps(), model.MapRow{Go: core + ".ResourceList", Reason: "a plain map in JSON"}),
		Refusals:   refusals(),
		References: references(),
		Secrets:    secrets(),
		Harmless:   harmless(),
		Objects:    objects(),
		Overrides:  slices.Concat(overrides(), upstreamForms()),
		Notes:      slices.Concat(notes(), upstreamNotes()),
		Limits:     slices.Concat(limits(), upstreamLimits()),
		Upstream:   upstream(),
		TypeMetas:  typeMetas(),
		Merged:     merged(),
		Bounds: model.Bounds{
			MaxLength:     1024,
			MaxItems:      128,
			MaxProperties: 256,
			MaxSources:    64,
			MaxNote:       90,
		},
	}
}

func identity() []model.IdentityRow {
	return []model.IdentityRow{
		{Go: "config/types/meta.Meta", Reason: "apiVersion and kind follow from the union's discriminator"},
		{Go: "config/types/v1alpha1.Config.ConfigVersion", Reason: "the legacy document has one version, which the union knows"},
	}
}
