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
)

// The webhooks look at specs of so many bytes and values.
const (
	largest    = 1 << 20
	manyValues = 20_000
)

// hostile are specs of TalosConfigPatches that are made to be slow, as large as they can be or as their lists may be long.
func hostile() map[string]string {
	manyKeys := func(n int, value string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"vm.key%05d":"%s",`, i, value)
		}

		return strings.TrimSuffix(b.String(), ",")
	}

	documents := func(n int, document func(int) string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = document(i)
		}

		return `{"layer":"Cluster","clusterName":"a","documents":[` + strings.Join(all, ",") + `]}`
	}

	file := func(content string) string {
		encoded, _ := json.Marshal(content) //nolint:errchkjson // it is a text

		return `{"kind":"Config","config":{"machine":{"files":[{"op":"create","path":"/var/x","permissions":420,"content":` + string(encoded) + `}]}}}`
	}

	fill := func(unit string, size int) string { return strings.Repeat(unit, size/len(unit)) }

	return map[string]string{
		"10,000 keys": documents(1, func(int) string {
			return `{"kind":"SysctlConfig","sysctlConfig":{"params":{` + manyKeys(10000, "1") + `}}}`
		}),
		"as many keys as fit": documents(1, func(int) string {
			return `{"kind":"SysctlConfig","sysctlConfig":{"params":{` + manyKeys(manyValues-10, strings.Repeat("v", 30)) + `}}}`
		}),
		"10,000 labels": documents(1, func(int) string {
			return `{"kind":"KubeNodeConfig","kubeNodeConfig":{"labels":{` + manyKeys(10000, "1") + `}}}`
		}),
		"10,000 bad labels": documents(1, func(int) string {
			return `{"kind":"KubeNodeConfig","kubeNodeConfig":{"labels":{` + manyKeys(10000, "a b") + `}}}`
		}),
		"128 large documents": documents(128, func(int) string {
			return `{"kind":"SysctlConfig","sysctlConfig":{"params":{` + manyKeys(150, strings.Repeat("v", 30)) + `}}}`
		}),
		"128 expressions": documents(128, func(i int) string {
			return fmt.Sprintf(`{"kind":"UserVolumeConfig","userVolumeConfig":{"name":"v%d","provisioning":{"diskSelector":{"match":"[%s1].size()>1"}}}}`, i, strings.Repeat("1,", 900))
		}),
		"comprehensions": documents(128, func(i int) string {
			return fmt.Sprintf(`{"kind":"UserVolumeConfig","userVolumeConfig":{"name":"v%d","provisioning":{"diskSelector":{"match":"%strue%s"}}}}`, i, strings.Repeat("[1].map(x,", 80), strings.Repeat(")", 80))
		}),
		"one long expression": documents(1, func(int) string {
			return `{"kind":"OOMConfig","oomConfig":{"triggerExpression":"` + fill("true||", largest-1000) + `true"}}`
		}),
		"a long text":          documents(1, func(int) string { return file(fill("a", largest-1000)) }),
		"addresses":            documents(1, func(int) string { return file(fill("a://", largest-1000)) }),
		"addresses with users": documents(1, func(int) string { return file(fill("a:b:c:", largest-1000)) }),
		"at signs":             documents(1, func(int) string { return file(fill("x://a:@", largest-1000)) }),
		"Secrets":              documents(1, func(int) string { return file(fill("kind: Secret\n---\n", largest-200000)) }),
		"lists in a manifest":  documents(1, func(int) string { return file("kind: Secret\na: " + fill("[", largest-1000)) }),
		"aliases in a manifest": documents(1, func(int) string {
			return file("kind: Secret\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]")
		}),
		"a list of itself":   documents(1, func(int) string { return file("&a {kind: List, items: [*a, *a, {kind: Secret}]}") }),
		"keys in a manifest": documents(1, func(int) string { return file("kind: Secret\ndata:\n" + manyLines(40000)) }),
		"deletions":          `{"layer":"Cluster","clusterName":"a","deletions":[` + strings.TrimSuffix(strings.Repeat(`{"kind":"Config","path":"`+strings.Repeat("/a", 255)+`"},`, 128), ",") + `]}`,
		"unknown kinds":      `{"layer":"Cluster","clusterName":"a","deletions":[` + strings.TrimSuffix(strings.Repeat(`{"kind":"`+strings.Repeat("A", 63)+`","name":"`+strings.Repeat("a", 253)+`"},`, 128), ",") + `]}`,
		"variables": documents(1, func(int) string {
			return `{"kind":"Config","config":{"machine":{"env":{` + manyKeys(10000, "token") + `}}}}`
		}),
		"many files": documents(1, func(int) string {
			return `{"kind":"Config","config":{"machine":{"files":[` + strings.TrimSuffix(strings.Repeat(`{"op":"x","path":"/opt","permissions":1,"content":"a"},`, 1000), ",") + `]}}}`
		}),
		"selector": `{"layer":"Cluster","clusterSelector":{"matchExpressions":[` + strings.TrimSuffix(strings.Repeat(`{"key":"a b","operator":"Is","values":["a b"]},`, 6000), ",") + `]},"deletions":[{"kind":"Config","path":"/machine/sysctls"}]}`,
	}
}

func manyLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  k%d: v\n", i)
	}

	return b.String()
}

// A hostile patch is answered within 100 MB. What is measured is the check itself, decoding as the webhook server does included. It is
// the least of some tries. The processor's time is told and not judged: the race detector multiplies it.
func TestHostilePatches(t *testing.T) {
	const (
		maxMemory = 100 << 20
		tries     = 3
	)

	for name, spec := range hostile() {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			raw := []byte(`{"apiVersion":"bootstrap.ichor.maesh.dev/v1alpha1","kind":"TalosConfigPatch","metadata":{"name":"hostile","namespace":"default"},"spec":` + spec + `}`)
			g.Expect(len(spec)).To(BeNumerically("<=", largest))

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

	documents := make([]any, manyValues/200)
	for i := range documents {
		documents[i] = map[string]any{"kind": "SysctlConfig", "sysctlConfig": map[string]any{"params": params}}
	}

	g.Expect(set(documents...)).To(Succeed())
	g.Expect(admin.Create(t.Context(), patch)).To(MatchError(ContainSubstring("values, at most 20000 are allowed")))
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
				answers <- admin.Create(t.Context(), object("TalosConfigPatch", "hostile", hostile()[name]), client.DryRunAll)
			}()
		}
	}

	for range sent {
		if err := <-answers; err != nil {
			// On a busy machine, and with the race detector, the API server may give up waiting for one of so many.
			g.Expect(apierrors.IsInvalid(err) || strings.Contains(err.Error(), "context deadline exceeded")).To(BeTrue(), err.Error())
			g.Expect(len(err.Error())).To(BeNumerically("<", 100_000))
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
