// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/internal/release"
	"github.com/maesh-dev/ichor/test/harness"
)

// Provider is one of Ichor's providers.
type Provider struct {
	// Directory of its manifests in the repository.
	Directory string

	// Namespace and Account are of its manager's ServiceAccount, as the manifests bind it.
	Namespace, Account string

	newManager constructor
}

// The providers of the repository.
var (
	Bootstrap = Provider{
		Directory: "config/bootstrap", Namespace: "ichor-bootstrap-system", Account: "ichor-bootstrap-manager", newManager: newBootstrapManager,
	}
	ControlPlane = Provider{
		Directory: "config/controlplane", Namespace: "ichor-controlplane-system", Account: "ichor-controlplane-manager", newManager: newControlPlaneManager,
	}
)

// User is the name by which the API server knows the manager.
func (p Provider) User() string { return "system:serviceaccount:" + p.Namespace + ":" + p.Account }

// Groups are those of the manager.
func (p Provider) Groups() []string {
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + p.Namespace}
}

// Read builds the installation of the provider from the repository whose root is given.
func (p Provider) Read(ctx context.Context, root string) (Components, error) {
	components, err := Read(ctx, root, p.Directory)
	components.provider = p

	return components, err
}

// Components are what a provider installs, sorted by when they are needed.
type Components struct {
	// CRDs must be served before a manager starts: give them to harness.Options.
	CRDs []*apiextensionsv1.CustomResourceDefinition

	// AggregatedRole is a file with the role that lets Cluster API's core manager handle the CRDs: give it to
	// harness.Options as a manifest.
	AggregatedRole string

	// Others are namespace, roles, webhooks and the like, without what only cert-manager knows.
	Others []*unstructured.Unstructured

	provider Provider
}

// Read builds the installation of a provider from its directory of manifests, in the repository whose root is given.
func Read(ctx context.Context, root, directory string) (Components, error) {
	objects, err := Build(ctx, root, directory+"/default")
	if err != nil {
		return Components{}, err
	}

	components := Components{AggregatedRole: filepath.Join(root, filepath.FromSlash(directory), "rbac", "aggregated_role.yaml")}

	for _, object := range objects {
		switch {
		case object.GetKind() == "CustomResourceDefinition":
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, crd); err != nil {
				return Components{}, fmt.Errorf("CRD %s: %w", object.GetName(), err)
			}

			components.CRDs = append(components.CRDs, crd)
		case object.GroupVersionKind().Group != "cert-manager.io":
			components.Others = append(components.Others, object)
		}
	}

	return components, nil
}

// Build has kustomize build a directory of the repository whose root is given.
func Build(ctx context.Context, root, path string) ([]*unstructured.Unstructured, error) {
	manifests, err := release.Kustomize(ctx, root, path)
	if err != nil {
		return nil, err
	}

	objects, err := harness.DecodeYAML(manifests)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", path, err)
	}

	return objects, nil
}

// Definitions are those of the components and of Cluster API, for a management cluster without Cluster API's core manager.
func (c Components) Definitions(ctx context.Context) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	crds, err := harness.CAPICRDs(ctx)
	if err != nil {
		return nil, err
	}

	for _, crd := range c.CRDs {
		crds = append(crds, crd.DeepCopy())
	}

	return crds, nil
}

// Rights are those of the objects that give a manager its rights, and the accounts and namespaces that they are given to and in.
func Rights(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(object *unstructured.Unstructured) bool {
		kind := object.GroupVersionKind()

		return kind.Group != rbacv1.GroupName && kind.Kind != "Namespace" && kind.Kind != "ServiceAccount"
	})
}

// Webhooks are the configurations that have the API server ask the manager.
func (c Components) Webhooks() []*unstructured.Unstructured {
	var found []*unstructured.Unstructured

	for _, object := range c.Others {
		if object.GroupVersionKind().Group == admissionregistrationv1.GroupName {
			found = append(found, object.DeepCopy())
		}
	}

	return found
}

// LabelCRDs gives every definition in a management cluster the label by which `clusterctl move` finds the kinds that it
// moves. clusterctl sets it on the definitions of each provider that it installs.
func LabelCRDs(ctx context.Context, c client.Client) error {
	crds := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := c.List(ctx, crds); err != nil {
		return fmt.Errorf("list CRDs: %w", err)
	}

	for i := range crds.Items {
		crd := &crds.Items[i]
		before := crd.DeepCopy()
		metav1.SetMetaDataLabel(&crd.ObjectMeta, clusterctlv1.ClusterctlLabel, "")

		if err := c.Patch(ctx, crd, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("label CRD %s: %w", crd.Name, err)
		}
	}

	return nil
}
