// SPDX-License-Identifier: Apache-2.0

package rivals_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// history is every content that every Secret of the namespace has ever had, as the API server has told it.
type history struct {
	mu     sync.Mutex
	fault  error
	byName map[string]map[types.UID]map[[sha256.Size]byte]bool

	// owned are the Secrets that each TalosConfig has ever had, by the UIDs of both.
	owned map[types.UID]map[types.UID]bool
}

// recordSecrets begins before there is any Secret, and goes on until ctx is done.
func recordSecrets(ctx context.Context, c client.WithWatch) (*history, error) {
	events, err := c.Watch(ctx, &corev1.SecretList{}, client.InNamespace(namespace))
	if err != nil {
		return nil, err
	}

	h := &history{byName: map[string]map[types.UID]map[[sha256.Size]byte]bool{}, owned: map[types.UID]map[types.UID]bool{}}

	go func() {
		defer events.Stop()

		for event := range events.ResultChan() {
			h.note(event)
		}

		if ctx.Err() == nil {
			h.fail(errors.New("the watch of Secrets has ended before the test"))
		}
	}()

	return h, nil
}

func (h *history) note(event watch.Event) {
	secret, ok := event.Object.(*corev1.Secret)
	if !ok {
		h.fail(fmt.Errorf("watch of Secrets: %v", event.Object))

		return
	}

	h.mu.Lock()
	defer h.mu.Unlock()

	if h.byName[secret.Name] == nil {
		h.byName[secret.Name] = map[types.UID]map[[sha256.Size]byte]bool{}
	}

	if h.byName[secret.Name][secret.UID] == nil {
		h.byName[secret.Name][secret.UID] = map[[sha256.Size]byte]bool{}
	}

	h.byName[secret.Name][secret.UID][content(secret)] = true

	if owner := metav1.GetControllerOf(secret); owner != nil && owner.Kind == "TalosConfig" {
		if h.owned[owner.UID] == nil {
			h.owned[owner.UID] = map[types.UID]bool{}
		}

		h.owned[owner.UID][secret.UID] = true
	}
}

func (h *history) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()

	h.fault = errors.Join(h.fault, err)
}

// content is the hash of all that the Secret holds.
func content(secret *corev1.Secret) [sha256.Size]byte {
	hash := sha256.New()

	for _, key := range slices.Sorted(maps.Keys(secret.Data)) {
		fmt.Fprintf(hash, "%d:%s%d:%s", len(key), key, len(secret.Data[key]), secret.Data[key])
	}

	return [sha256.Size]byte(hash.Sum(nil))
}

// versions is how many different contents there were.
func (h *history) versions() int {
	h.mu.Lock()
	defer h.mu.Unlock()

	n := 0

	for _, secrets := range h.byName {
		for _, contents := range secrets {
			n += len(contents)
		}
	}

	return n
}

// check says so when a Secret has ever changed, when one of those that are named was ever made twice, or when a TalosConfig that is there
// ever had two. (One that goes may lose its Secret before a manager has seen it go.)
func (h *history) check(once func(name string) bool, there map[types.UID]bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()

	faults := []error{h.fault}

	for name, secrets := range h.byName {
		if once(name) && len(secrets) > 1 {
			faults = append(faults, fmt.Errorf("secret %s was made %d times", name, len(secrets)))
		}

		for uid, contents := range secrets {
			if len(contents) > 1 {
				faults = append(faults, fmt.Errorf("secret %s (UID %s) has had %d contents", name, uid, len(contents)))
			}
		}
	}

	for config, secrets := range h.owned {
		if there[config] && len(secrets) > 1 {
			faults = append(faults, fmt.Errorf("the TalosConfig with UID %s was given %d data Secrets", config, len(secrets)))
		}
	}

	return errors.Join(faults...)
}
