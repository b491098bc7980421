// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

func sameText(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }

func sameMap(a, b map[string]string) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

func TestSharedText(t *testing.T) {
	shared := NewShared()
	first := shared.Text(strings.Clone("cluster"))

	if got := shared.Text(strings.Clone("cluster")); got != "cluster" || !sameText(first, got) {
		t.Errorf("got %q, which is another copy", got)
	}

	long := strings.Repeat("x", maxTextLength+1)
	if got := shared.Text(long); !sameText(got, long) || len(shared.texts) != 1 {
		t.Error("a long text is kept")
	}

	if shared.Text("") != "" {
		t.Error("nothing became something")
	}
}

func TestSharedMap(t *testing.T) {
	shared := NewShared()
	labels := map[string]string{"cluster": "c", "pool": "p"}
	first := shared.Map(maps.Clone(labels))

	if got := shared.Map(maps.Clone(labels)); !sameMap(first, got) {
		t.Error("an equal map is another")
	}

	for name, other := range map[string]map[string]string{
		"another value": {"cluster": "c", "pool": "q"},
		"swapped":       {"cluster": "p", "pool": "c"},
		"more":          {"cluster": "c", "pool": "p", "zone": "z"},
		"fewer":         {"cluster": "c"},
		"empty":         {},
	} {
		if diff := cmp.Diff(other, shared.Map(maps.Clone(other))); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}

	if shared.Map(nil) != nil {
		t.Error("nil became a map")
	}

	if diff := cmp.Diff(map[string]string{"cluster": "c", "pool": "p"}, first); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// What is different in every object does not fill the memory.
func TestSharedIsBounded(t *testing.T) {
	shared := NewShared()

	for i := range maxTexts + maxMaps {
		name := fmt.Sprintf("m-%d", i)
		if got := shared.Map(map[string]string{"name": name}); got["name"] != name {
			t.Fatalf("got %v", got)
		}
	}

	if len(shared.texts) > maxTexts || len(shared.maps) > maxMaps {
		t.Errorf("%d texts and %d maps are kept", len(shared.texts), len(shared.maps))
	}

	for i := range 2 * maxTextBytes / maxTextLength {
		kept := 0
		for text := range shared.texts {
			kept += len(text)
		}

		if kept > maxTextBytes {
			t.Fatalf("%d bytes of texts are kept", kept)
		}

		text := fmt.Sprintf("%0*d", maxTextLength, i)
		if got := shared.Text(strings.Clone(text)); got != text || !sameText(got, shared.Text(text)) {
			t.Fatalf("got another copy of %v", got)
		}
	}
}

// Caches of several kinds share at once.
func TestSharedByMany(t *testing.T) {
	shared := NewShared()

	var wait sync.WaitGroup

	for range 8 {
		wait.Go(func() {
			for i := range 1000 {
				want := map[string]string{"i": fmt.Sprint(i % 50)}
				if got := shared.Map(maps.Clone(want)); !maps.Equal(got, want) {
					t.Errorf("got %v, want %v", got, want)
				}
			}
		})
	}

	wait.Wait()
}
