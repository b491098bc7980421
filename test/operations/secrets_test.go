// SPDX-License-Identifier: Apache-2.0

package operations_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// shortest is the length from which on a value is looked for; a shorter one is in any text by chance.
const shortest = 12

// secretTexts are texts that must be nowhere but in Secrets, and whose they are.
type secretTexts map[string]string

// add adds a value as it is, encoded, and line by line: a log has no line breaks in a value.
func (s secretTexts) add(value, origin string) {
	if len(value) < shortest {
		return
	}

	s[value] = origin
	s[base64.StdEncoding.EncodeToString([]byte(value))] = origin

	if lines := strings.Split(strings.TrimSpace(value), "\n"); len(lines) > 1 {
		for _, line := range lines {
			if len(line) >= 2*shortest && !strings.HasPrefix(line, "-----") {
				s[line] = origin
			}
		}
	}
}

// leaves adds the texts in a document but for what is public in it.
func (s secretTexts) leaves(node any, path string) {
	switch node := node.(type) {
	case map[string]any:
		for key, value := range node {
			if !slices.Contains([]string{"crt", "ca", "id", "context", "endpoints", "nodes"}, key) {
				s.leaves(value, path+"."+key)
			}
		}
	case string:
		s.add(node, path)
	}
}

// secret adds the values of a Secret that are secret. Those of a machine's config are those of the bundle, and what was put into it.
func (s secretTexts) secret(secret *corev1.Secret) error {
	for key, value := range secret.Data {
		origin := secret.Namespace + "/" + secret.Name + " " + key

		switch key {
		case secrets.BundleKey, secrets.TalosconfigKey:
			var document any
			if err := yaml.Unmarshal(value, &document); err != nil {
				return fmt.Errorf("%s: %w", origin, err)
			}

			s.leaves(document, origin)
		case "tls.key", "password", "private", "auth":
			s.add(string(value), origin)
		}
	}

	return nil
}

// writtenTexts are what the tests have ever written into Secrets. Some of it is replaced in the end.
type writtenTexts struct {
	mu    sync.Mutex
	texts secretTexts
}

var written = writtenTexts{texts: secretTexts{}}

func (w *writtenTexts) note(value, origin string) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.texts.add(value, origin)
}

// allSecrets are the texts of all Secrets that there are and of those that there were.
func allSecrets(ctx context.Context) (secretTexts, error) {
	list := &corev1.SecretList{}
	if err := admin.List(ctx, list); err != nil {
		return nil, err
	}

	written.mu.Lock()
	texts := maps.Clone(written.texts)
	written.mu.Unlock()

	for i := range list.Items {
		if err := texts.secret(&list.Items[i]); err != nil {
			return nil, err
		}
	}

	return texts, nil
}

// searched are the kinds of which no object may have a secret anywhere, conditions and events among them.
var searched = []schema.GroupVersionKind{
	{Group: "events.k8s.io", Version: "v1", Kind: "Event"},
	bootstrapv1.GroupVersion.WithKind("TalosConfig"),
	bootstrapv1.GroupVersion.WithKind("TalosConfigTemplate"),
	bootstrapv1.GroupVersion.WithKind("TalosClusterConfig"),
	bootstrapv1.GroupVersion.WithKind("TalosConfigPatch"),
	bootstrapv1.GroupVersion.WithKind("TalosStorage"),
	clusterv1.GroupVersion.WithKind("Cluster"),
	clusterv1.GroupVersion.WithKind("Machine"),
	clusterv1.GroupVersion.WithKind("MachinePool"),
	{Version: "v1", Kind: "ConfigMap"},
}

// leaks says where a secret is and must not be: in the log of any program that has run, in an event, or in any object of the kinds that
// are searched.
func leaks(ctx context.Context) []error {
	texts, err := allSecrets(ctx)
	if err != nil {
		return []error{err}
	}

	places := map[string]string{}

	logs, err := filepath.Glob(filepath.Join(cluster.LogDir(), "*"))
	if err != nil {
		return []error{err}
	}

	for _, path := range logs {
		content, err := os.ReadFile(path)
		if err != nil {
			return []error{err}
		}

		places["the log "+filepath.Base(path)] = string(content)
	}

	for _, kind := range searched {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)

		if err := admin.List(ctx, list); err != nil {
			return []error{err}
		}

		for _, object := range list.Items {
			content, err := json.Marshal(object.Object)
			if err != nil {
				return []error{err}
			}

			places[fmt.Sprintf("the %s %s/%s", kind.Kind, object.GetNamespace(), object.GetName())] = string(content)
		}
	}

	return search(places, texts)
}

// search names the secrets that are in a place. Their values are told nowhere.
func search(places map[string]string, texts secretTexts) []error {
	var faults []error

	for _, place := range slices.Sorted(maps.Keys(places)) {
		for text, origin := range texts {
			if strings.Contains(places[place], text) {
				faults = append(faults, fmt.Errorf("%s has a value of %s", place, origin))
			}
		}
	}

	return faults
}

// checkSecrets looks for every secret in everything that is none, and that it looks for something.
func checkSecrets(t *testing.T, w *tenant) {
	g := NewWithT(t)

	texts, err := allSecrets(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(texts).To(And(HaveKey("hunter3-hunter3"), HaveKey("hunter2-hunter2")))

	origins := map[string]bool{}
	for _, origin := range texts {
		origins[origin] = true
	}

	for _, origin := range []string{"c-ca tls.key", "c-talos bundle.cluster.secret", "c-talos bundle.certs.os.key", "c-talosconfig talosconfig.contexts.c.key"} {
		g.Expect(origins).To(HaveKey(w.namespace + "/" + origin))
	}

	g.Expect(leaks(t.Context())).To(BeEmpty())
}

// A secret is found as it is, encoded, and by any of its lines.
func TestSearch(t *testing.T) {
	const line = "MC4CAQAwBQYDK2VwBCIEIHrPMtW4cV5ZfHnRZ"

	texts := secretTexts{}
	texts.add("hunter2-hunter2", "ns/registry password")
	texts.add("-----BEGIN KEY-----\n"+line+"\n-----END KEY-----\n", "ns/c-ca tls.key")

	tests := map[string]struct {
		place string
		want  []string
	}{
		"nothing":     {`{"msg":"Rendered the machine config","Secret":{"name":"registry"}}`, nil},
		"as it is":    {"password hunter2-hunter2 refused", []string{"the log has a value of ns/registry password"}},
		"encoded":     {base64.StdEncoding.EncodeToString([]byte("hunter2-hunter2")), []string{"the log has a value of ns/registry password"}},
		"in one line": {`-----BEGIN KEY-----\n` + line + `\n-----END KEY-----`, []string{"the log has a value of ns/c-ca tls.key"}},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, fault := range search(map[string]string{"the log": test.place}, texts) {
				got = append(got, fault.Error())
			}

			NewWithT(t).Expect(got).To(Equal(test.want))
		})
	}
}
