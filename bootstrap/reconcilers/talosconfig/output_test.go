// SPDX-License-Identifier: Apache-2.0

package talosconfig_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
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
	w.create(tunnelYAML)
	w.secret("registry", map[string]string{"password": "hunter2-hunter2", "auth": "aHVudGVyMjpodW50ZXIy"})
	w.secret("wireguard", map[string]string{"private": "no-key-but-a-secret-all-the-same"})
	w.machine("w-1", worker, "")
	w.condition("w-1", rendered, "InvalidReference")
	changeRegistry(map[string]string{"password": "hunter2-hunter2"})(w)
	w.condition("w-1", rendered, "ValidationFailed")

	secret := &corev1.Secret{}
	w.change(secret, "wireguard", func() { secret.Data["private"] = []byte(wireguardKey) })
	w.ready("w-1")

	values := secretValues(w)
	w.Expect(len(values)).To(BeNumerically(">", 20), "the search is for something")
	w.Expect(values).To(And(HaveKey("hunter2-hunter2"), HaveKey(wireguardKey)))
	values["no-key-but-a-secret-all-the-same"] = "wireguard, before it changed"

	for where, text := range outputs(w) {
		w.Expect(text).NotTo(BeEmpty(), where)
		w.Expect(found(text, values)).To(BeEmpty(), where)
	}

	w.Expect(logs.String()).To(ContainSubstring("Response"), "the log has what the client says of its requests")
	w.Expect(logs.String()).NotTo(MatchRegexp(hexDump), "the log has a body, in a form that hides what is in it from the search")
}

// hexDump is how the Kubernetes client logs the bodies of requests and responses.
const hexDump = `(?m)^\s*[0-9a-f]{8}  ([0-9a-f]{2} ){8}`

// found returns where the values that are in the text are from.
func found(text string, values map[string]string) []string {
	var origins []string

	for value, origin := range values {
		if strings.Contains(text, value) {
			origins = append(origins, origin)
		}
	}

	return origins
}

// The search finds a secret in each form in which a log may have it.
func TestSearchFindsSecrets(t *testing.T) {
	w := newWorld(t)
	w.secret("registry", map[string]string{"password": "sesame-" + w.namespace})

	values := secretValues(w)
	origin := ConsistOf(w.namespace + "/registry password")

	for name, text := range map[string]string{
		"as it is":     "the password sesame-" + w.namespace + " is wrong",
		"in an object": `{"data":{"password":"` + base64.StdEncoding.EncodeToString([]byte("sesame-"+w.namespace)) + `"}}`,
	} {
		w.Expect(found(text, values)).To(origin, name)
	}

	w.Expect(hex.Dump([]byte("the body of a request with a Secret"))).To(MatchRegexp(hexDump))
}

// outputs are the texts that people without a right to read Secrets may see.
func outputs(w *world) map[string]string {
	texts := map[string]string{"the log": logs.String()}

	for kind, list := range map[string]client.ObjectList{
		"an event":             &eventsv1.EventList{},
		"a TalosConfig":        &bootstrapv1.TalosConfigList{},
		"a TalosClusterConfig": &bootstrapv1.TalosClusterConfigList{},
		"a TalosConfigPatch":   &bootstrapv1.TalosConfigPatchList{},
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
		values[base64.StdEncoding.EncodeToString([]byte(value))] = origin

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
				bundleValues(value, origin, add)
			case secrets.TalosconfigKey:
				talosconfigValues(value, origin, add)
			case "password", "auth", "identityToken", "tls.key", "private":
				add(string(value), origin)
			}
		}
	}

	return values
}

func bundleValues(data []byte, origin string, add func(value, origin string)) {
	var bundle any
	if err := yaml.Unmarshal(data, &bundle); err != nil {
		add(string(data), origin)

		return
	}

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

func talosconfigValues(data []byte, origin string, add func(value, origin string)) {
	parsed, err := clientconfig.FromBytes(data)
	if err != nil {
		add(string(data), origin)

		return
	}

	for _, each := range parsed.Contexts {
		if each != nil {
			add(each.Key, origin)
		}
	}
}
