// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"slices"
	"testing"

	"github.com/maesh-dev/ichor/internal/codegen/model"
)

func TestWhatOnlyTheReferenceSaysIsSaid(t *testing.T) {
	t.Parallel()

	for _, field := range inReferenceOnly() {
		if !slices.ContainsFunc(notes(), func(n model.Note) bool { return n.Go == "config/types/"+field && n.ReferenceOnly }) {
			t.Errorf("%s: no note is about it", field)
		}
	}
}
