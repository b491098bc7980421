// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/cel"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"

	"github.com/maesh-dev/ichor/internal/version"
)

// TestFormsAreInWords: whatever reads its own text has words for what it takes, in every kind of document.
func TestFormsAreInWords(t *testing.T) {
	t.Parallel()

	// These are told of by other means.
	spoken := map[reflect.Type]bool{
		urlType: true, endpointType: true, reflect.TypeFor[cel.Expression](): true,
		reflect.TypeFor[[]byte](): true, reflect.TypeFor[v1alpha1.Base64Bytes](): true,
	}

	seen := map[*plan]bool{}

	var walk func(p *plan)

	walk = func(p *plan) {
		if p == nil || seen[p] {
			return
		}

		seen[p] = true

		if p.shape == shapeScalar && p.custom && !spoken[p.typ] && forms[p.typ] == "" && len(wordsOf(p.typ)) == 0 {
			t.Errorf("%s: what does it take?", p.typ)
		}

		walk(p.elem)

		for i := range p.fields {
			walk(p.fields[i].plan)
		}
	}

	for _, kind := range version.Kinds() {
		h := head{id: ID{Kind: kind}, apiVersion: "v1alpha1"}
		if kind == v1alpha1.Version {
			h = head{legacy: true}
		}

		empty, err := h.prototype()
		if err != nil {
			t.Fatal(err)
		}

		p, err := planFor(reflect.TypeOf(empty).Elem())
		if err != nil {
			t.Fatal(err)
		}

		walk(p)
	}
}

// TestWordsOf: the words are those of machinery's own lists.
func TestWordsOf(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		typ  reflect.Type
		want []string
	}{
		"from zero":           {reflect.TypeFor[nethelpers.BondMode](), nethelpers.BondModeStrings()},
		"large numbers":       {reflect.TypeFor[nethelpers.VLANProtocol](), nethelpers.VLANProtocolStrings()},
		"a number with names": {reflect.TypeFor[nethelpers.RoutingTable](), nil},
		"no enumeration":      {reflect.TypeFor[v1alpha1.DiskSize](), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if diff := cmp.Diff(test.want, wordsOf(test.typ)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
