// SPDX-License-Identifier: Apache-2.0

package talosconfig_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// No secret value of this run, in the form it is stored in or decoded, is in a log, an event, or an object that is no Secret.
func TestNoSecretInAnyOutput(t *testing.T) {
	w := newWorld(t)
	w.cluster()
	w.create(registryYAML)
	w.secret("registry", map[string]string{"password": "hunter2-hunter2", "auth": "aHVudGVyMjpodW50ZXIy"})
	w.machine("w-1", worker, "")
	w.condition("w-1", rendered, "InvalidReference")
	changeRegistry(map[string]string{"password": "hunter2-hunter2"})(w)
	w.ready("w-1")

	values := secretValues(w)
	w.Expect(len(values)).To(BeNumerically(">", 20), "the search is for something")
	w.Expect(values).To(HaveKey("hunter2-hunter2"))

	for where, text := range outputs(w) {
		w.Expect(text).NotTo(BeEmpty(), where)

		for value, origin := range values {
			if strings.Contains(text, value) {
				t.Errorf("%s holds the secret %s", where, origin)
			}
		}
	}
}

// outputs are the texts that people without a right to read Secrets may see.
func outputs(w *world) map[string]string {
	texts := map[string]string{"the log": logs.String()}

	for kind, list := range map[string]client.ObjectList{
		"an event":             &eventsv1.EventList{},
		"a TalosConfig":        &bootstrapv1.TalosConfigList{},
		"a TalosClusterConfig": &bootstrapv1.TalosClusterConfigList{},
	} {
		w.Expect(admin.List(w.t.Context(), list)).To(Succeed())

		data, err := json.Marshal(list)
		w.Expect(err).NotTo(HaveOccurred())

		texts[kind] = string(data)
	}

	return texts
}

// shortest is the length from which on a value is taken for a secret; a shorter one is in any text by chance.
const shortest = 12

// secretValues returns every secret value of the management cluster, with where it is from: those that users gave, and
// those of bundles, each certificate's aside, which is public.
func secretValues(w *world) map[string]string {
	values := map[string]string{}

	add := func(value, origin string) {
		if len(value) < shortest {
			return
		}

		values[value] = origin

		if decoded, err := base64.StdEncoding.DecodeString(value); err == nil && len(decoded) >= shortest {
			values[string(decoded)] = origin
		}

		// A log may break a PEM text into lines, or escape it.
		for line := range strings.Lines(value) {
			if line = strings.TrimSpace(line); len(line) > 40 && !strings.HasPrefix(line, "---") {
				values[line] = origin
			}
		}
	}

	list := &corev1.SecretList{}
	w.Expect(admin.List(w.t.Context(), list)).To(Succeed())

	for _, secret := range list.Items {
		if strings.HasSuffix(secret.Namespace, "-system") {
			continue
		}

		for key, value := range secret.Data {
			origin := secret.Namespace + "/" + secret.Name + " " + key

			switch key {
			case secrets.BundleKey:
				bundleValues(w, value, origin, add)
			case "password", "auth", "identityToken", "tls.key":
				add(string(value), origin)
			}
		}
	}

	return values
}

func bundleValues(w *world, data []byte, origin string, add func(value, origin string)) {
	var bundle any
	w.Expect(yaml.Unmarshal(data, &bundle)).To(Succeed())

	var walk func(any, string)

	walk = func(node any, path string) {
		switch node := node.(type) {
		case map[string]any:
			for key, value := range node {
				if key != "crt" && key != "id" {
					walk(value, path+"."+key)
				}
			}
		case string:
			add(node, path)
		}
	}

	walk(bundle, origin)
}
