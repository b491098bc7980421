// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/internal/secrets"
)

const (
	// talosAuthorityKey is the key of Talos' accepted authorities in a Secret of a user's.
	talosAuthorityKey = "talos.crt"

	maxAuthorities = 256
)

// authorityCache has the certificates of users' Secrets, by version of the Secret: no cache has those, and they are read once.
type authorityCache struct {
	metadata, live client.Reader
	read           *lru.Cache
}

// get returns the certificates in a Secret; none when it does not exist or has none.
func (c *authorityCache) get(ctx context.Context, key client.ObjectKey) ([]byte, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))

	if err := c.metadata.Get(ctx, key, object); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}

		return nil, fmt.Errorf("secret %s: metadata: %w", key.Name, err)
	}

	version := string(object.UID) + "/" + object.ResourceVersion
	if known, ok := c.read.Get(version); ok {
		if certificates, ok := known.([]byte); ok {
			return certificates, nil
		}
	}

	secret := &corev1.Secret{}
	if err := c.live.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("secret %s: read: %w", key.Name, secrets.WithoutWords(err))
	}

	certificates := secret.Data[talosAuthorityKey]
	c.read.Add(version, certificates)

	return certificates, nil
}

// isOwnSecret says whether a Secret of the name is one of the cluster's as a whole.
func isOwnSecret(name, cluster string) bool { return slices.Contains(secrets.OwnNames(cluster), name) }
