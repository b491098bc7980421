// SPDX-License-Identifier: Apache-2.0

package operations_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/maesh-dev/ichor/internal/secrets"
)

// checkLog reads the log as a collector does. Lines of our controllers name their objects as Cluster API's do, and say
// something that begins like a sentence and is none; no line has a secret in it.
func checkLog(t *testing.T, w *tenant, log string) {
	g := NewWithT(t)

	ours, rendered := 0, false

	for line := range strings.Lines(log) {
		entry := map[string]any{}
		g.Expect(json.Unmarshal([]byte(line), &entry)).To(Succeed(), line)
		g.Expect(entry).To(And(HaveKey("ts"), HaveKeyWithValue("msg", Not(BeEmpty()))), line)
		g.Expect(entry).To(Or(HaveKey("v"), HaveKey("err"), HaveKey("level")), "a level, or an error: %s", line)

		if entry["controller"] != "talosconfig" || entry["reconcileID"] == nil {
			continue
		}

		// The other tests' objects are here, too.
		if config, ok := entry["TalosConfig"].(map[string]any); ok && config["namespace"] != w.namespace {
			continue
		}

		ours++

		g.Expect(entry["msg"]).To(MatchRegexp(`^[A-Z].*[^.]$`), line)
		g.Expect(entry).To(HaveKeyWithValue("TalosConfig", And(HaveKeyWithValue("namespace", w.namespace), HaveKey("name"))), line)

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

	g.Expect(ours).To(BeNumerically(">", 5))
	g.Expect(rendered).To(BeTrue())

	values := secretValues(w)
	g.Expect(len(values)).To(BeNumerically(">", 20), "the search is for something")
	g.Expect(values).To(HaveKey("hunter3-hunter3"))
	values["hunter2-hunter2"] = "registry password, before it changed"

	for value, origin := range values {
		g.Expect(strings.Contains(log, value)).To(BeFalse(), "the log has the value of %s", origin)
	}
}

// shortest is the length from which on a value is looked for; a shorter one is in any text by chance.
const shortest = 12

// secretValues are the values in the Secrets of the namespace that are secret, as they are and encoded, and whose they are.
func secretValues(w *tenant) map[string]string {
	list := &corev1.SecretList{}
	w.Expect(admin.List(w.t.Context(), list, client.InNamespace(w.namespace))).To(Succeed())

	values := map[string]string{}
	add := func(value, origin string) {
		if len(value) >= shortest {
			values[value] = origin
			values[base64.StdEncoding.EncodeToString([]byte(value))] = origin
		}
	}

	for _, secret := range list.Items {
		for key, value := range secret.Data {
			origin := secret.Name + " " + key

			switch key {
			case secrets.BundleKey:
				var bundle any

				w.Expect(yaml.Unmarshal(value, &bundle)).To(Succeed())
				leaves(bundle, origin, add)
			case "tls.key", "password", "private", "auth", secrets.TalosconfigKey:
				add(string(value), origin)
			}
		}
	}

	return values
}

// leaves are the texts in a bundle but for certificates and the cluster's ID, which are public.
func leaves(node any, path string, add func(value, origin string)) {
	switch node := node.(type) {
	case map[string]any:
		for key, value := range node {
			if key != "crt" && key != "id" {
				leaves(value, path+"."+key, add)
			}
		}
	case string:
		add(node, path)
	}
}
