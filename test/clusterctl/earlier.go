// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/maesh-dev/ichor/internal/release"
	"github.com/maesh-dev/ichor/test/harness"
)

// What the earlier version has, and the later one has not.
const (
	// earlierRole is the name of a Role in the provider's namespace.
	earlierRole = "earlier-role"

	// earlierArgument is one of the manager.
	earlierArgument = "--sync-period=11m"
)

// laterFields are the fields of specs that the earlier version does not know, by the provider's name and by definition.
var laterFields = map[string]map[string]string{
	"bootstrap-ichor":     {"talosconfigpatches.bootstrap.ichor.maesh.dev": "priority"},
	"control-plane-ichor": {"taloscontrolplanes.controlplane.ichor.maesh.dev": "remediation"},
}

// makeEarlier turns the components of a provider in a repository into those of an earlier version, so that an upgrade has something to do:
// a definition lacks a field, the manager has an argument that it has no more, and there is an object that goes.
func makeEarlier(repository, label, file string) error {
	path := filepath.Join(repository, label, EarlierVersion, file)

	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}

	objects, err := harness.DecodeYAML(content)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}

	namespace, changed := "", 0

	for _, object := range objects {
		switch object.GetKind() {
		case "Deployment":
			namespace = object.GetNamespace()
			err = addArgument(object)
			changed++
		case "CustomResourceDefinition":
			if field, ok := laterFields[label][object.GetName()]; ok {
				err = dropField(object, field)
				changed++
			}
		}

		if err != nil {
			return fmt.Errorf("%s: %s %s: %w", path, object.GetKind(), object.GetName(), err)
		}
	}

	if want := 1 + len(laterFields[label]); changed != want {
		return fmt.Errorf("%s: %d objects could be made those of an earlier version, and not %d", path, changed, want)
	}

	objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
		"metadata": map[string]any{
			"name": earlierRole, "namespace": namespace, "labels": map[string]any{"cluster.x-k8s.io/provider": label},
		},
	}})

	var made bytes.Buffer

	for _, object := range objects {
		manifest, err := yaml.Marshal(object.Object)
		if err != nil {
			return err
		}

		made.WriteString("---\n")
		made.Write(manifest)
	}

	return os.WriteFile(path, made.Bytes(), 0o644)
}

// makeAllEarlier does so for each of Ichor's providers that a release has.
func makeAllEarlier(repository string, providers []release.Provider) error {
	for _, provider := range providers {
		if provider.RepositoryOnly {
			continue
		}

		if err := makeEarlier(repository, provider.Label, provider.ComponentsFile); err != nil {
			return err
		}
	}

	return nil
}

func addArgument(deployment *unstructured.Unstructured) error {
	containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	if err != nil {
		return err
	}

	container, ok := containers[0].(map[string]any)
	if !ok {
		return fmt.Errorf("the container is a %T", containers[0])
	}

	arguments, _, err := unstructured.NestedStringSlice(container, "args")
	if err != nil {
		return err
	}

	if err := unstructured.SetNestedStringSlice(container, append(arguments, earlierArgument), "args"); err != nil {
		return err
	}

	return unstructured.SetNestedSlice(deployment.Object, containers, "spec", "template", "spec", "containers")
}

// dropField takes a field out of the spec of a definition's only version.
func dropField(definition *unstructured.Unstructured, field string) error {
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil {
		return err
	}

	version, ok := versions[0].(map[string]any)
	if !ok || len(versions) != 1 {
		return fmt.Errorf("there are %d versions, the first a %T", len(versions), versions[0])
	}

	path := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties", field}
	if _, found, err := unstructured.NestedMap(version, path...); !found {
		return fmt.Errorf("spec has no field %s: %w", field, err)
	}

	unstructured.RemoveNestedField(version, path...)

	return unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions")
}

// hasField says whether the spec of a definition has a field.
func hasField(definition *apiextensionsv1.CustomResourceDefinition, field string) bool {
	_, found := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties[field]

	return found
}
