// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Search looks for every secret in everything that is none: all objects of all kinds but Secrets, conditions and events among them,
// and all logs. Its methods may be called from several goroutines.
type Search struct {
	client client.Client
	kinds  []kind
	logs   []string

	mu      sync.Mutex
	written Texts
}

// kind is one that can be listed.
type kind struct {
	schema.GroupVersionKind

	namespaced bool
}

// NewSearch makes a search of a management cluster, with an administrator's access, and of the logs whose paths match the patterns.
func NewSearch(config *rest.Config, c client.Client, logs ...string) (*Search, error) {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("search for secrets: %w", err)
	}

	served, err := d.ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("search for secrets: kinds: %w", err)
	}

	s := &Search{client: c, logs: logs, written: Texts{}}

	for _, list := range served {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("search for secrets: kinds: %w", err)
		}

		for _, resource := range list.APIResources {
			if slices.Contains(resource.Verbs, "list") && (version.Group != "" || resource.Kind != "Secret") {
				s.kinds = append(s.kinds, kind{GroupVersionKind: version.WithKind(resource.Kind), namespaced: resource.Namespaced})
			}
		}
	}

	return s, nil
}

// Wrote tells of a value that was written into a Secret and may be replaced before the search.
func (s *Search) Wrote(value, origin string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.written.Add(value, origin)
}

// Texts are what is looked for: the values of all Secrets that there are, and of those that there were at an earlier search.
func (s *Search) Texts(ctx context.Context) (Texts, error) {
	list := &corev1.SecretList{}
	if err := s.client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("search for secrets: %w", err)
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	for i := range list.Items {
		if err := s.written.AddSecret(&list.Items[i]); err != nil {
			return nil, fmt.Errorf("search for secrets: %w", err)
		}
	}

	return maps.Clone(s.written), nil
}

// Leaks names the secrets that are where none may be, and where that is: in an object of a namespace, empty for all objects, or in a
// log. Their values are told nowhere.
func (s *Search) Leaks(ctx context.Context, namespace string) ([]string, error) {
	texts, err := s.Texts(ctx)
	if err != nil {
		return nil, err
	}

	places := map[string]string{}
	if err := s.readLogs(places); err != nil {
		return nil, fmt.Errorf("search for secrets: %w", err)
	}

	for _, each := range s.kinds {
		if err := s.readObjects(ctx, each, namespace, places); err != nil {
			return nil, fmt.Errorf("search for secrets: list %s: %w", each.Kind, err)
		}
	}

	return leaksIn(places, texts), nil
}

func (s *Search) readLogs(places map[string]string) error {
	for _, pattern := range s.logs {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}

		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}

			places["the log "+filepath.Base(path)] = string(content)
		}
	}

	return nil
}

func (s *Search) readObjects(ctx context.Context, of kind, namespace string, places map[string]string) error {
	if namespace != "" && !of.namespaced {
		return nil
	}

	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(of.GroupVersionKind)

	// A kind may have gone since it was discovered.
	if err := s.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		if meta.IsNoMatchError(err) {
			return nil
		}

		return client.IgnoreNotFound(err)
	}

	for _, object := range list.Items {
		content, err := json.Marshal(object.Object)
		if err != nil {
			return err
		}

		places[fmt.Sprintf("the %s %s", of.Kind, client.ObjectKeyFromObject(&object))] = string(content)
	}

	return nil
}

// leaksIn names the secrets that are in a place, in the order of the places.
func leaksIn(places map[string]string, texts Texts) []string {
	var leaks []string

	f := texts.finder()

	for _, place := range slices.Sorted(maps.Keys(places)) {
		var origins []string
		for _, text := range f.find(places[place]) {
			origins = append(origins, texts[text])
		}

		slices.Sort(origins)

		for _, origin := range slices.Compact(origins) {
			leaks = append(leaks, fmt.Sprintf("%s has a value of %s", place, origin))
		}
	}

	return leaks
}

// checkSecrets searches the namespace of the watch, and the logs.
func (w *Watch) checkSecrets(ctx context.Context) error {
	if w.options.Search == nil {
		return nil
	}

	leaks, err := w.options.Search.Leaks(ctx, w.options.Namespace)
	if err != nil {
		return err
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	for _, leak := range leaks {
		w.fault(Secrets, "%s", leak)
	}

	return nil
}
