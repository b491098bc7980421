// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMarked masks what came out of a Secret, in fields that are no secrets by themselves, wherever a merge has moved it to.
func TestMarked(t *testing.T) {
	t.Parallel()

	pod := func(name, image string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: " + name + "}, spec: {containers: [{name: main, image: " + image + "}]}}"
	}

	config := configFrom(t, "machine: {pods: ["+pod("plain", "registry.example.com/plain")+"]}")

	secret, err := LoadSecret([]byte("machine: {pods: ["+pod("hidden", "registry.example.com/hidden")+"]}"), []string{"/machine/pods/0"})
	if err != nil {
		t.Fatal(err)
	}

	plain := mustLoad(t, "machine: {pods: ["+pod("last", "registry.example.com/last")+"]}")
	static := mustLoad(t, "{apiVersion: v1alpha1, kind: KubeStaticPodConfig, name: a, pod: "+pod("b", "registry.example.com/b")+"}")

	var shown []string

	observe := func(change Change) {
		if change.New != nil {
			shown = append(shown, change.New.String())
		}
	}

	for _, patch := range []*Patch{secret, plain, static} {
		if err := config.Apply(patch, observe); err != nil {
			t.Fatal(err)
		}
	}

	whole, err := LoadSecret([]byte("{apiVersion: v1alpha1, kind: KubeStaticPodConfig, name: a, pod: "+pod("c", "registry.example.com/c")+"}"), []string{"/pod"})
	if err != nil {
		t.Fatal(err)
	}

	if err := config.Apply(whole, observe); err != nil {
		t.Fatal(err)
	}

	clone, err := config.Clone()
	if err != nil {
		t.Fatal(err)
	}

	for name, each := range map[string]*Config{"config": config, "clone": clone} {
		var masked []string

		for _, leaf := range each.Leaves() {
			if leaf.Value.Secret() && strings.HasSuffix(leaf.Pointer, "image") {
				masked = append(masked, leaf.Pointer+" "+leaf.Value.Reveal())
			}
		}

		want := []string{"/machine/pods/1/spec/containers/0/image registry.example.com/hidden", "/pod/spec/containers/0/image registry.example.com/c"}
		if diff := cmp.Diff(want, masked); diff != "" {
			t.Errorf("%s: masked (-want +got):\n%s", name, diff)
		}

		text, err := each.EncodeMasked()
		if err != nil {
			t.Fatal(err)
		}

		for value, want := range map[string]bool{"hidden": false, "/c": false, "plain": true, "last": true} {
			if got := strings.Contains(string(text), "registry.example.com/"+strings.TrimPrefix(value, "/")); got != want {
				t.Errorf("%s: %s is shown: %t, want %t\n%s", name, value, got, want, text)
			}
		}
	}

	if text := strings.Join(shown, "\n"); strings.Contains(text, "hidden") || strings.Contains(text, "example.com/c") {
		t.Errorf("the observer sees a secret:\n%s", text)
	}
}
