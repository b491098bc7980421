// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// moveLabel has `clusterctl move` take an object along that no owner reference ties to the cluster.
const moveLabel = "clusterctl.cluster.x-k8s.io/move"

// maxKey leaves room for a number behind a key, which may have 253 characters.
const maxKey = 240

// vault collects what goes into the Secret.
type vault struct {
	allowed         bool
	name, namespace string
	values          map[string]string
}

func newVault(options Options) *vault {
	return &vault{allowed: options.Secrets, name: options.Name, namespace: options.Namespace, values: map[string]string{}}
}

// put keeps a value and gives its key, which is made of the document and the field.
func (v *vault) put(id merge.ID, pointer, value string) string {
	parts := tokensOf(pointer)
	if id.Name != "" {
		parts = append([]string{id.Name}, parts...)
	}

	if id.Kind != merge.LegacyKind {
		parts = append([]string{id.Kind}, parts...)
	}

	stem := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}

		return '-'
	}, strings.Join(parts, "."))
	stem = strings.TrimLeft(stem[:min(len(stem), maxKey)], ".")

	key := stem
	for i := 2; ; i++ {
		if _, taken := v.values[key]; !taken && key != "" {
			v.values[key] = value

			return key
		}

		key = fmt.Sprintf("%s-%d", stem, i)
	}
}

// object is the Secret, or nil when there is nothing for it.
func (v *vault) object() *corev1.Secret {
	if len(v.values) == 0 {
		return nil
	}

	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: v.name, Namespace: v.namespace, Labels: map[string]string{moveLabel: ""}},
		Type:       corev1.SecretTypeOpaque,
	}

	// What is no text was refused: it could not be referred to.
	secret.StringData = maps.Clone(v.values)

	return secret
}
