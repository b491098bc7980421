// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/yaml"

	"github.com/maesh-dev/ichor/internal/secrets"
)

// shortest is the length from which on a value is looked for; a shorter one is in any text by chance.
const shortest = 12

// Texts are texts that must be nowhere but in Secrets, and whose they are.
type Texts map[string]string

// Add adds a value as it is, encoded, and line by line: a log has no line breaks in a value.
func (t Texts) Add(value, origin string) {
	value = strings.TrimSpace(value)
	if len(value) < shortest {
		return
	}

	t[value] = origin
	// Of an encoded text, three bytes at a time are the same whatever follows.
	t[base64.StdEncoding.EncodeToString([]byte(value[:len(value)/3*3]))] = origin

	if lines := strings.Split(value, "\n"); len(lines) > 1 {
		for _, line := range lines {
			if len(line) >= 2*shortest && !strings.HasPrefix(line, "-----") {
				t[line] = origin
			}
		}
	}
}

// public are the keys below which a document of secrets has nothing secret.
var public = []string{
	"crt", "ca", "id", "context", "endpoints", "nodes", "certificate-authority-data", "client-certificate-data",
	"server", "name", "cluster", "current-context", "kind", "apiVersion", "roles",
}

// addLeaves adds the texts in a document but for what is public in it. A name is public where it stands for itself alone: the
// secrets bundle has a part of the name cluster, too.
func (t Texts) addLeaves(node any, path string) {
	switch node := node.(type) {
	case map[string]any:
		for key, value := range node {
			if _, text := value.(string); text && slices.Contains(public, key) {
				continue
			}

			t.addLeaves(value, path+"."+key)
		}
	case []any:
		for i, value := range node {
			t.addLeaves(value, fmt.Sprintf("%s[%d]", path, i))
		}
	case string:
		t.Add(node, path)
	}
}

// certificates are keys of Secrets whose values anybody may read.
var certificates = []string{corev1.TLSCertKey, corev1.ServiceAccountRootCAKey, "ca.crt"}

// AddSecret adds the values of a Secret that are secret. A machine's config is not added: its secrets are those of the bundle and
// of what was put into it, which are in Secrets of their own.
func (t Texts) AddSecret(object *corev1.Secret) error {
	for key, value := range object.Data {
		origin := object.Namespace + "/" + object.Name + " " + key

		switch {
		case slices.Contains(certificates, key):
		case key == secrets.BundleKey, key == secrets.TalosconfigKey,
			key == secret.KubeconfigDataName && strings.HasSuffix(object.Name, "-"+string(secret.Kubeconfig)):
			var document any
			if err := yaml.Unmarshal(value, &document); err != nil {
				return fmt.Errorf("%s: %w", origin, err)
			}

			t.addLeaves(document, origin)
		case key == secret.KubeconfigDataName:
		default:
			t.Add(string(value), origin)
		}
	}

	return nil
}

// Origins are those of all texts, each once.
func (t Texts) Origins() []string {
	return slices.Compact(slices.Sorted(maps.Values(t)))
}

// finder finds texts in one pass over a content, however many they are: by their beginnings.
type finder map[string][]string

func (t Texts) finder() finder {
	f := finder{}
	for text := range t {
		f[text[:shortest]] = append(f[text[:shortest]], text)
	}

	return f
}

// find returns the texts that a content has, each once.
func (f finder) find(content string) []string {
	var found []string

	for i := 0; i+shortest <= len(content); i++ {
		for _, text := range f[content[i:i+shortest]] {
			if strings.HasPrefix(content[i:], text) && !slices.Contains(found, text) {
				found = append(found, text)
			}
		}
	}

	return found
}
