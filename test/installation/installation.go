// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/maesh-dev/ichor/test/harness"
	"github.com/maesh-dev/ichor/test/tools"
)

// The manager's ServiceAccount, as config/bootstrap binds it.
const (
	ManagerNamespace = "ichor-bootstrap-system"
	ManagerUser      = "system:serviceaccount:" + ManagerNamespace + ":ichor-bootstrap-manager"
)

// ManagerGroups are those of the ServiceAccount.
var ManagerGroups = []string{"system:serviceaccounts", "system:serviceaccounts:" + ManagerNamespace}

// Components are what the bootstrap provider installs, sorted by when they are needed.
type Components struct {
	// CRDs must be served before a manager starts: give them to harness.Options.
	CRDs []*apiextensionsv1.CustomResourceDefinition

	// AggregatedRole is a file with the role that lets Cluster API's core manager handle the CRDs: give it to
	// harness.Options as a manifest.
	AggregatedRole string

	// Others are namespace, roles, webhooks and the like, without what only cert-manager knows.
	Others []*unstructured.Unstructured
}

// ReadBootstrap builds the installation of the bootstrap provider from the repository whose root is given.
func ReadBootstrap(ctx context.Context, root string) (Components, error) {
	kubectl, err := tools.Path(ctx, tools.Kubectl)
	if err != nil {
		return Components{}, err
	}

	directory := filepath.Join(root, "config", "bootstrap")
	command := exec.CommandContext(ctx, kubectl, "kustomize", filepath.Join(directory, "default"))

	var failure bytes.Buffer

	command.Stderr = &failure

	manifests, err := command.Output()
	if err != nil {
		return Components{}, fmt.Errorf("build config/bootstrap/default: %w\n%s", err, failure.String())
	}

	objects, err := harness.DecodeYAML(manifests)
	if err != nil {
		return Components{}, fmt.Errorf("build config/bootstrap/default: %w", err)
	}

	components := Components{AggregatedRole: filepath.Join(directory, "rbac", "aggregated_role.yaml")}

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
