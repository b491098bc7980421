// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/metrics"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/validation"
	"github.com/maesh-dev/ichor/test/hostile"
)

// A hostile patch is answered by the API server, and within 100 MB. What is measured is the check itself, decoding as the webhook server does included. It is
// the least of some tries. The processor's time is told and not judged: the race detector multiplies it.
func TestHostilePatches(t *testing.T) {
	const (
		maxMemory = 100 << 20
		tries     = 3
	)

	for name, spec := range hostile.Specs() {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			raw := []byte(`{"apiVersion":"bootstrap.ichor.maesh.dev/v1alpha1","kind":"TalosConfigPatch","metadata":{"name":"hostile","namespace":"default"},"spec":` + spec + `}`)
			g.Expect(len(spec)).To(BeNumerically("<=", hostile.Largest))

			shortest, memory := time.Hour, uint64(1<<62)
			faults := 0

			for range tries {
				elapsed, used := measure(func() {
					patch := &bootstrapv1.TalosConfigPatch{}
					g.Expect(json.Unmarshal(raw, patch)).To(Succeed())

					faults = len(validation.TalosConfigPatch(patch).Faults)
				})
				shortest, memory = min(shortest, elapsed), min(memory, used)
			}

			answered(g, admin.Create(t.Context(), object("TalosConfigPatch", "hostile", spec), client.DryRunAll))
			t.Logf("%d KiB: %v, %d MiB, %d faults", len(raw)>>10, shortest.Round(time.Millisecond), memory>>20, faults)
			g.Expect(memory).To(BeNumerically("<", maxMemory))
		})
	}
}

// What is larger than anything that could be used is refused without a look at it, and the webhook answers in its time.
func TestTooLarge(t *testing.T) {
	g := NewWithT(t)

	patch := object("TalosConfigPatch", "large", "{layer: Cluster, clusterName: a}")
	file := map[string]any{"op": "create", "path": "/var/x", "permissions": int64(420), "content": strings.Repeat("a", 250_000)}
	set := func(documents ...any) error {
		return unstructured.SetNestedSlice(patch.Object, documents, "spec", "documents")
	}

	g.Expect(set(map[string]any{"kind": "Config", "config": map[string]any{"machine": map[string]any{"files": []any{file, file, file, file, file}}}})).To(Succeed())
	g.Expect(admin.Create(t.Context(), patch)).To(MatchError(And(
		ContainSubstring("spec: Too long: has 1250"), ContainSubstring("bytes, at most 1048576 are allowed: what is larger fits into no machine's config"))))

	// The schema allows 256 keys in each.
	params := map[string]any{}
	for i := range 200 {
		params[fmt.Sprintf("vm.key%d", i)] = "1"
	}

	documents := make([]any, hostile.ManyValues/200)
	for i := range documents {
		documents[i] = map[string]any{"kind": "SysctlConfig", "sysctlConfig": map[string]any{"params": params}}
	}

	g.Expect(set(documents...)).To(Succeed())
	g.Expect(admin.Create(t.Context(), patch)).To(MatchError(ContainSubstring("values, at most 20000 are allowed")))
}

// answered checks that a patch is accepted, or refused with a reason that can be read.
func answered(g *WithT, err error) {
	if err == nil {
		return
	}

	// On a busy machine, and with the race detector, the API server may give up waiting.
	g.Expect(apierrors.IsInvalid(err) || strings.Contains(err.Error(), "context deadline exceeded")).To(BeTrue(), err.Error())
	g.Expect(len(err.Error())).To(BeNumerically("<", 100_000))
}

// Hostile patches reach the webhook over the network, many at once, and it goes on answering.
func TestHostilePatchesAtOnce(t *testing.T) {
	g := NewWithT(t)

	answers := make(chan error)
	sent := 0

	for _, name := range []string{"128 large documents", "10,000 bad labels", "comprehensions", "many files"} {
		for range 3 {
			sent++

			go func() {
				answers <- admin.Create(t.Context(), object("TalosConfigPatch", "hostile", hostile.Specs()[name]), client.DryRunAll)
			}()
		}
	}

	for range sent {
		if err := <-answers; err != nil {
			answered(g, err)
		}
	}

	g.Eventually(func() error {
		return admin.Create(t.Context(), object("TalosConfigPatch", "ordinary", "{layer: Cluster, clusterName: a, deletions: [{kind: Config, path: /machine/sysctls}]}"), client.DryRunAll)
	}, time.Minute).Should(Succeed())
}

// measure runs something and returns the time of the processors that it took, and by how much the heap has grown at most.
func measure(do func()) (time.Duration, uint64) {
	runtime.GC()

	var (
		before = heap()
		peak   = before
		end    = make(chan struct{})
		done   = make(chan struct{})
	)

	go func() {
		defer close(done)

		ticker := time.NewTicker(2 * time.Millisecond)
		defer ticker.Stop()

		for {
			peak = max(peak, heap())

			select {
			case <-end:
				return
			case <-ticker.C:
			}
		}
	}()

	start := processorTime()

	do()

	elapsed := processorTime() - start

	close(end)
	<-done

	return elapsed, peak - before
}

func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)

	return sample[0].Value.Uint64()
}

func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}

	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
