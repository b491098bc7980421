// SPDX-License-Identifier: Apache-2.0

package operations_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// objectKinds are what each controller's lines name their object by.
var objectKinds = map[string]string{
	"clustersecrets":     "Cluster",
	"talosconfig":        "TalosConfig",
	"talosclusterconfig": "TalosClusterConfig",
	"talosconfigpatch":   "TalosConfigPatch",
}

// checkLog reads the log as a collector does. Lines of our controllers name their objects as Cluster API's do, and say
// something that begins like a sentence and is none.
func checkLog(t *testing.T, w *tenant, log string) {
	g := NewWithT(t)

	ours, rendered := map[string]int{}, false

	for line := range strings.Lines(log) {
		entry := map[string]any{}
		g.Expect(json.Unmarshal([]byte(line), &entry)).To(Succeed(), line)
		g.Expect(entry).To(And(HaveKey("ts"), HaveKeyWithValue("msg", Not(BeEmpty()))), line)
		g.Expect(entry).To(Or(HaveKey("v"), HaveKey("err"), HaveKey("level")), "a level, or an error: %s", line)

		controller, _ := entry["controller"].(string)
		if controller == "" || entry["reconcileID"] == nil {
			continue
		}

		kind := objectKinds[controller]
		g.Expect(kind).NotTo(BeEmpty(), "a controller that the test does not know: %s", line)

		// The other tests' objects are here, too.
		if object, ok := entry[kind].(map[string]any); ok && object["namespace"] != w.namespace {
			continue
		}

		ours[controller]++

		g.Expect(entry["msg"]).To(MatchRegexp(`^[A-Z].*[^.]$`), line)
		g.Expect(entry).To(HaveKeyWithValue(kind, And(HaveKeyWithValue("namespace", w.namespace), HaveKey("name"))), line)

		for key := range entry {
			g.Expect(key).To(MatchRegexp(`^([a-z][a-zA-Z]*|TalosConfig|TalosClusterConfig|TalosConfigPatch|Machine|MachinePool|Cluster|Secret|ConfigMap)$`), line)
		}

		if entry["msg"] == "Rendered the machine config" {
			rendered = true

			g.Expect(entry).To(HaveKeyWithValue("Cluster", And(HaveKeyWithValue("name", "c"), HaveKeyWithValue("namespace", w.namespace))), line)
			g.Expect(entry).To(Or(HaveKey("Machine"), HaveKey("MachinePool")), line)
			g.Expect(entry).To(HaveKey("Secret"), line)
		}
	}

	g.Expect(rendered).To(BeTrue())
	g.Expect(slices.Sorted(maps.Keys(ours))).To(Equal(slices.Sorted(maps.Keys(objectKinds))), "every controller says something: %v", ours)
	g.Expect(ours["talosconfig"]).To(BeNumerically(">", 5))
}
