// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
)

// TestEncodeAsTalosDoes: the same bytes as machinery's container, for a generated config with and without patches.
func TestEncodeAsTalosDoes(t *testing.T) {
	for name, machineType := range map[string]machine.Type{"worker": machine.TypeWorker, "control plane": machine.TypeControlPlane} {
		t.Run(name, func(t *testing.T) {
			base := generated(t, machineType)
			c := New(base)

			for range 2 {
				p, err := c.Provider()
				if err != nil {
					t.Fatal(err)
				}

				want, err := p.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
				if err != nil {
					t.Fatal(err)
				}

				if diff := cmp.Diff(string(want), encodeAll(t, c)); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}

				for _, text := range benchPatches {
					mustApply(t, c, mustLoad(t, text), nil)
				}
			}

			if _, err := configloader.NewFromBytes([]byte(encodeAll(t, c))); err != nil {
				t.Errorf("the result does not load: %v", err)
			}
		})
	}
}

// TestCachedBase: many renders from one base and the same patches, at once, leave both as they were.
func TestCachedBase(t *testing.T) {
	base := generated(t, machine.TypeControlPlane)
	before := encodeAll(t, New(base))

	patches := make([]*Patch, 0, len(benchPatches)+1)
	for _, text := range append(benchPatches, "machine: {nodeAnnotations: {a: b}}\ncluster: {controlPlane: {endpoint: 'https://other'}}") {
		patches = append(patches, mustLoad(t, text))
	}

	results := make([]string, 8)

	var group sync.WaitGroup

	for i := range results {
		group.Go(func() {
			c := New(base)

			for _, p := range patches {
				if err := c.Apply(p, func(Change) {}); err != nil {
					t.Error(err)
				}
			}

			b, err := c.Encode()
			if err != nil {
				t.Error(err)
			}

			results[i] = string(b)
		})
	}

	group.Wait()

	for _, result := range results {
		if result != results[0] {
			t.Errorf("two renders differ:\n%s", cmp.Diff(results[0], result))
		}
	}

	if diff := cmp.Diff(before, encodeAll(t, New(base))); diff != "" {
		t.Errorf("the base was changed: (-before +after)\n%s", diff)
	}
}

// TestProviderRefusesConflicts: machinery's checks across documents hold.
func TestProviderRefusesConflicts(t *testing.T) {
	c := configFrom(t, doc("LinkConfig", "eth0", "mtu: 1"))
	mustApply(t, c, mustLoad(t, doc("DummyLinkConfig", "eth0", "mtu: 1")), nil)

	if _, err := c.Provider(); err == nil || !strings.Contains(err.Error(), "eth0") {
		t.Errorf("got %v, want an error that names the link", err)
	}
}

// TestBaseThatCannotBeCopied: machinery panics on it.
func TestBaseThatCannotBeCopied(t *testing.T) {
	base, err := configloader.NewFromBytes([]byte(doc("KubeletConfig", "", "config: {date: 2026-01-02}")))
	if err != nil {
		t.Fatal(err)
	}

	c := New(base)

	want := "(KubeletConfig): the document has a value that cannot be copied, such as an unquoted date; quote it"
	if _, err := c.Encode(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}

	if err := c.Apply(mustLoad(t, doc("KubePrismConfig", "", "port: 1")), nil); err == nil {
		t.Error("want an error of Apply")
	}
}

func TestBuild(t *testing.T) {
	kubelet := k8s.NewKubeletConfigV1Alpha1()
	kubelet.KubeletImage = "example.com/kubelet:v2"
	kubelet.KubeletConfig = meta.Unstructured{Object: map[string]any{"maxPods": 200}}

	probe := network.NewTCPProbeConfigV1Alpha1("up")
	probe.ProbeInterval = time.Second

	patch, err := Build(kubelet, probe)
	if err != nil {
		t.Fatal(err)
	}

	// The patch has its own copy.
	kubelet.KubeletConfig.Object["maxPods"] = 1

	c := configFrom(t, docs(doc("KubeletConfig", "", "image: old\nextraArgs: {a: b}\nconfig: {x: y}"), doc("TCPProbeConfig", "up", "timeout: 3s\nendpoint: a:1")))
	mustApply(t, c, patch, nil)

	want := docs(doc("KubeletConfig", "", "image: example.com/kubelet:v2\nextraArgs: {a: b}\nconfig: {x: y, maxPods: 200}"),
		doc("TCPProbeConfig", "up", "interval: 1s\ntimeout: 3s\nendpoint: a:1"))
	if diff := cmp.Diff(encodeAll(t, configFrom(t, want)), encodeAll(t, c)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	if _, err := Build(nil); err == nil {
		t.Error("want an error for no document")
	}
}

func TestIDs(t *testing.T) {
	documents := map[string]string{
		"Config":          "machine: {}",
		"KubePrismConfig": doc("KubePrismConfig", "", ""),
		"LinkConfig/eth0": doc("LinkConfig", "eth0", ""),
	}

	for want, text := range documents {
		if got := IDOf(mustLoad(t, text).documents[0].doc).String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}

	var _ []config.Document = configFrom(t, documents["Config"]).Documents()
}
