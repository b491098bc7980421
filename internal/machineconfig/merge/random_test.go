// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
)

const rounds = 12

// TestSameAsTalos: where machinery's merge loses nothing, ours gives the same bytes, whether the patch comes from text or
// from Go.
func TestSameAsTalos(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string, empty config.Document) {
		for seed := range rounds {
			f := seeded(t, seed, false)
			base, patch := f.document(empty), f.document(empty)

			patched, err := configpatcher.StrategicMerge(providerOf(t, base), configpatcher.NewStrategicMergePatch(providerOf(t, patch)))
			if err != nil {
				t.Fatal(err)
			}

			want := encode(t, patched.Documents()[0])

			built, err := Build(patch)
			if err != nil {
				t.Fatal(err)
			}

			c := configOf(t, base)
			mustApply(t, c, built, nil)

			if diff := cmp.Diff(want, encode(t, c.docs[0].doc)); diff != "" {
				t.Errorf("seed %d: built in Go: (-machinery +ours)\n%s", seed, diff)
			}
		}
	})
}

func providerOf(t testing.TB, doc config.Document) *container.Container {
	t.Helper()

	p, err := container.New(mustClone(t, doc))
	if err != nil {
		t.Fatal(err)
	}

	return p
}

// TestTextSameAsGo: a document said in YAML and one built in Go merge in the same way, if the text leaves out what is
// empty.
func TestTextSameAsGo(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string, empty config.Document) {
		for seed := range rounds {
			f := seeded(t, seed, true)
			base, patch := f.document(empty), f.document(empty)

			// What is loaded once is what text can say.
			text := encode(t, patch)

			loaded, err := Load([]byte(text))
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, text)
			}

			built, err := Build(loaded.documents[0].doc)
			if err != nil {
				t.Fatal(err)
			}

			dropZeros(loaded.documents[0].said, loaded.documents[0].plan, reflect.ValueOf(loaded.documents[0].doc).Elem())

			fromText, fromGo := configOf(t, base), configOf(t, base)
			mustApply(t, fromText, loaded, nil)
			mustApply(t, fromGo, built, nil)

			if diff := cmp.Diff(encode(t, fromGo.docs[0].doc), encode(t, fromText.docs[0].doc)); diff != "" {
				t.Errorf("seed %d: (-go +text)\n%s", seed, diff)
			}
		}
	})
}

// dropZeros takes the zeros that Talos' encoder writes for fields without omitempty out of what the text says.
func dropZeros(s *said, p *plan, v reflect.Value) {
	for p.shape == shapePointer {
		if v.IsNil() {
			return
		}

		v, p = v.Elem(), p.elem
	}

	if p.shape != shapeStruct {
		return
	}

	kept := s.fields[:0]

	for _, fs := range s.fields {
		f := &p.fields[fs.index]
		if saidBy(f.at(v), f.plan) == nil {
			continue
		}

		dropZeros(fs.said, f.plan, f.at(v))
		kept = append(kept, fs)
	}

	s.fields = kept
}

// TestLeavesAreTheEncodedConfig compares the leaves with what a YAML decoder finds in the encoded document.
func TestLeavesAreTheEncodedConfig(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string, empty config.Document) {
		for seed := range rounds {
			doc := seeded(t, seed, true).document(empty)

			want := map[string]bool{}
			decodedLeaves(decode(t, encode(t, doc)), "", want)

			got := map[string]bool{}
			for _, leaf := range LeavesOf(doc) {
				if got[leaf.Pointer] {
					t.Errorf("seed %d: %s is there twice", seed, leaf.Pointer)
				}

				got[leaf.Pointer] = true
			}

			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("seed %d: (-encoded +leaves)\n%s", seed, diff)
			}
		}
	})
}

// TestChangesTellTheDifference carries the reported changes out on the leaves from before: the result must be the leaves
// from after, for merges and for deletions of every leaf's place, list elements included.
func TestChangesTellTheDifference(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string, empty config.Document) {
		for seed := range rounds {
			f := seeded(t, seed, true)
			base, patch := f.document(empty), f.document(empty)

			built, err := Build(patch)
			if err != nil {
				t.Fatal(err)
			}

			c := configOf(t, base)
			replayed := leafMap(c.Leaves())
			observe := func(change Change) { replay(t, replayed, change) }

			mustApply(t, c, built, observe)

			if diff := cmp.Diff(leafMap(c.Leaves()), replayed); diff != "" {
				t.Fatalf("seed %d: merge: (-after +replayed)\n%s", seed, diff)
			}

			deleteAll(t, c, f.rand, replayed, observe)
		}
	})
}

func deleteAll(t *testing.T, c *Config, random *rand.Rand, replayed map[string]string, observe Observer) {
	t.Helper()

	id := c.docs[0].id

	for range 10 {
		leaves := c.Leaves()
		leaf := leaves[random.IntN(len(leaves))]

		pointer := leaf.Pointer
		for random.IntN(2) == 0 && strings.Count(pointer, "/") > 1 {
			pointer = pointer[:strings.LastIndex(pointer, "/")]
		}

		before := leafMap(leaves)

		done, err := c.Delete(id, pointer, observe)
		if err != nil {
			if !strings.Contains(err.Error(), "identifies the document") && !strings.Contains(err.Error(), "plain value") {
				t.Fatal(err)
			}

			continue
		}

		after := leafMap(c.Leaves())
		if !done && !cmp.Equal(before, after) {
			t.Errorf("delete %s: said to do nothing, but did", pointer)
		}

		if diff := cmp.Diff(after, replayed); diff != "" {
			t.Fatalf("delete %s: (-after +replayed)\n%s", pointer, diff)
		}
	}
}

func leafMap(leaves []Leaf) map[string]string {
	m := map[string]string{}
	for _, leaf := range leaves {
		m[leaf.Pointer] = leaf.Value.Reveal()
	}

	return m
}

func replay(t *testing.T, leaves map[string]string, change Change) {
	t.Helper()

	at := change.Pointer
	if change.Op == OpMove {
		at = change.From
	}

	old, there := leaves[at]
	if there != (change.Old != nil) || (there && old != change.Old.Reveal()) {
		t.Fatalf("%s %s: the old value is %v, want %q", change.Op, change.Pointer, change.Old, old)
	}

	delete(leaves, at)

	if change.New != nil {
		leaves[change.Pointer] = change.New.Reveal()
	}
}

// TestNothingIsShared changes the result of a merge everywhere, and looks whether the base or the patch has changed.
func TestNothingIsShared(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string, empty config.Document) {
		for seed := range rounds {
			f := seeded(t, seed, true)
			base, patch := f.document(empty), f.document(empty)
			baseText, patchText := encode(t, base), encode(t, patch)

			built, err := Build(patch)
			if err != nil {
				t.Fatal(err)
			}

			inPatch := encode(t, built.documents[0].doc)

			for _, c := range []*Config{configOf(t, base), configOf(t)} {
				mustApply(t, c, built, nil)

				// Another patch on top, and one on top of nothing but the first patch.
				again, err := Build(f.document(empty))
				if err != nil {
					t.Fatal(err)
				}

				mustApply(t, c, again, nil)
				scribble(reflect.ValueOf(c.docs[0].doc).Elem())
			}

			for what, pair := range map[string][2]string{
				"base":            {baseText, encode(t, base)},
				"source of patch": {patchText, encode(t, patch)},
				"patch":           {inPatch, encode(t, built.documents[0].doc)},
			} {
				if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
					t.Errorf("seed %d: the %s was changed: (-before +after)\n%s", seed, what, diff)
				}
			}
		}
	})
}

// scribble writes over everything that can be reached.
func scribble(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			scribble(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				scribble(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			scribble(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			scribble(v.MapIndex(key))

			if v.Type().Elem().Kind() != reflect.Pointer {
				v.SetMapIndex(key, reflect.Zero(v.Type().Elem()))
			}
		}
	default:
		if v.CanSet() {
			v.SetZero()
		}
	}
}
