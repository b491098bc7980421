// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/test/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// fieldOwner is the field manager of everything that the harness applies.
const fieldOwner = client.FieldOwner("ichor-test-harness")

// NewScheme returns a scheme with Kubernetes' own kinds, CustomResourceDefinition and Cluster API's core kinds, to which
// the caller may add.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	utilruntime.Must(clusterv1.AddToScheme(scheme))
	return scheme
}

// InfrastructureCRDs are Cluster API's own stand-ins for an infrastructure provider: GenericInfrastructureCluster,
// GenericInfrastructureMachine and their templates, in the group infrastructure.cluster.x-k8s.io. They carry the
// contract label, take any fields, and have no controller, so that a test plays the provider by writing their status.
func InfrastructureCRDs() []*apiextensionsv1.CustomResourceDefinition {
	return []*apiextensionsv1.CustomResourceDefinition{
		builder.GenericInfrastructureClusterCRD.DeepCopy(),
		builder.GenericInfrastructureClusterTemplateCRD.DeepCopy(),
		builder.GenericInfrastructureMachineCRD.DeepCopy(),
		builder.GenericInfrastructureMachineTemplateCRD.DeepCopy(),
	}
}

// ReadCRDs reads the definitions in YAML files and in the YAML files of directories.
func ReadCRDs(paths ...string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	options := envtest.CRDInstallOptions{Paths: paths, ErrorIfPathMissing: true}
	if err := envtest.ReadCRDFiles(&options); err != nil {
		return nil, fmt.Errorf("read CRDs: %w", err)
	}
	return options.CRDs, nil
}

// InstallCRDs creates or updates definitions and waits until the API server serves them.
func (mc *ManagementCluster) InstallCRDs(ctx context.Context, crds ...*apiextensionsv1.CustomResourceDefinition) error {
	if len(crds) == 0 {
		return nil
	}
	options := envtest.CRDInstallOptions{
		CRDs:   crds,
		Scheme: mc.client.Scheme(),
		// Definitions are published one after the other, and more slowly on a busy machine.
		MaxTime:      time.Minute,
		PollInterval: 50 * time.Millisecond,
	}
	if deadline, ok := ctx.Deadline(); ok {
		options.MaxTime = min(options.MaxTime, time.Until(deadline))
	}
	if _, err := envtest.InstallCRDs(mc.Config(), options); err != nil {
		return fmt.Errorf("install CRDs: %w", err)
	}
	return nil
}

// ApplyFiles applies every object in YAML files, in their order, with server-side apply.
func (mc *ManagementCluster) ApplyFiles(ctx context.Context, paths ...string) error {
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		objects, err := decodeYAML(content)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := mc.apply(ctx, objects...); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// Apply applies objects in their order, with server-side apply.
func (mc *ManagementCluster) Apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	return mc.apply(ctx, objects...)
}

func (mc *ManagementCluster) apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	for _, object := range objects {
		configuration := client.ApplyConfigurationFromUnstructured(object)
		if err := mc.client.Apply(ctx, configuration, fieldOwner, client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), client.ObjectKeyFromObject(object), err)
		}
	}
	return nil
}

// DecodeYAML reads all objects of a stream of YAML documents.
func DecodeYAML(content []byte) ([]*unstructured.Unstructured, error) {
	return decodeYAML(content)
}

// decodeYAML reads all documents that hold something.
func decodeYAML(content []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for i := 0; ; i++ {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("document %d: %w", i, err)
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}
