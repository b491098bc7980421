// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// Object is what a Secret or ConfigMap holds that users refer to. Its text form shows nothing of it.
type Object struct {
	data map[string][]byte

	// refused says that it is a cluster's own Secret. Who may write a patch, and nothing else, must not learn what is in it.
	refused bool
}

// SecretObject takes what a Secret holds. Of a cluster's own Secrets, and of machines' bootstrap data, nothing is taken: what refers to
// them is refused.
func SecretObject(secret *corev1.Secret) Object {
	if secrets.IsOwn(secret) {
		return Object{refused: true}
	}

	return Object{data: secret.Data}
}

// ConfigMapObject takes what a ConfigMap holds, text or not.
func ConfigMapObject(configMap *corev1.ConfigMap) Object {
	data := make(map[string][]byte, len(configMap.Data)+len(configMap.BinaryData))
	maps.Copy(data, configMap.BinaryData)

	for key, text := range configMap.Data {
		data[key] = []byte(text)
	}

	return Object{data: data}
}

// String hides the values from every format verb.
func (Object) String() string { return "object(hidden)" }

// GoString hides the values from %#v.
func (Object) GoString() string { return "object(hidden)" }

// reservedNames are the names of Secrets that nobody refers to for a cluster: its own, and the one that its bundle is taken from.
func reservedNames(cluster string, config *bootstrapv1.TalosClusterConfig) []string {
	var names []string

	if cluster != "" {
		names = secrets.OwnNames(cluster)
	}

	if config != nil && config.Spec.SecretsRef != nil {
		names = append(names, config.Spec.SecretsRef.Name)
	}

	return names
}

func refusedSecret(name string) error {
	return fmt.Errorf("secret %q holds secrets of a cluster or a machine's bootstrap data, which nothing may be taken from: "+
		"put the value into a Secret of its own and refer to that", name)
}
