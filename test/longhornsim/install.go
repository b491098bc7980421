// SPDX-License-Identifier: Apache-2.0

package longhornsim

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	lh "github.com/maesh-dev/ichor/test/longhornsim/api/v1beta2"
	"github.com/maesh-dev/ichor/test/longhornsim/model"
)

//go:embed config/crd/*.yaml
var crdFiles embed.FS

// definitionAnnotation tells which definition is installed, so that the next Sim of a cluster need not do it again.
const definitionAnnotation = "longhornsim.ichor.maesh.dev/definition"

// CRDs returns Longhorn's definitions.
func CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	read, err := readCRDs()

	crds := make([]*apiextensionsv1.CustomResourceDefinition, len(read))
	for i := range read {
		crds[i] = read[i].DeepCopy()
	}

	return crds, err
}

var readCRDs = sync.OnceValues(func() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	const dir = "config/crd"

	entries, err := crdFiles.ReadDir(dir)
	if err != nil {
		return nil, err
	}

	var crds []*apiextensionsv1.CustomResourceDefinition

	for _, entry := range entries {
		content, err := crdFiles.ReadFile(path.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}

		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(content, crd); err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}

		hash := sha256.Sum256(content)
		crd.Annotations[definitionAnnotation] = hex.EncodeToString(hash[:8])
		crds = append(crds, crd)
	}

	return crds, nil
})

// crdTimeout bounds the wait for the definitions; they take longer on a busy machine.
const crdTimeout = time.Minute

// concurrentWrites is how many objects are written at once where their order does not matter.
const concurrentWrites = 8

func (s *Sim) install(ctx context.Context) error {
	crds, err := CRDs()
	if err != nil {
		return err
	}

	if err := s.installCRDs(ctx, crds); err != nil {
		return err
	}

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: s.options.Namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"},
	}}
	if err := s.client.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}

	// Where service accounts are asked for, no pod comes in without.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: model.ServiceAccount, Namespace: s.options.Namespace}}
	if err := s.client.Create(ctx, account); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}

	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentWrites)

	for name, value := range model.DefaultSettings() {
		group.Go(func() error {
			setting := &lh.Setting{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.options.Namespace}, Value: value}
			if err := s.client.Create(groupCtx, setting); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}

			return nil
		})
	}

	if err := group.Wait(); err != nil {
		return err
	}

	s.hook, err = s.startWebhook(ctx)

	return err
}

// installCRDs installs the definitions that are not there already.
func (s *Sim) installCRDs(ctx context.Context, crds []*apiextensionsv1.CustomResourceDefinition) error {
	// All of what the definitions say is half a megabyte.
	installed := &metav1.PartialObjectMetadataList{}
	installed.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))

	if err := s.client.List(ctx, installed); err != nil {
		return err
	}

	served, err := s.served()
	if err != nil {
		return err
	}

	there := map[string]string{}
	for _, crd := range installed.Items {
		there[crd.Name] = crd.Annotations[definitionAnnotation]
	}

	missing := slices.DeleteFunc(crds, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		return there[crd.Name] == crd.Annotations[definitionAnnotation] && served[crd.Spec.Names.Plural]
	})
	if len(missing) == 0 {
		return nil
	}

	// Longhorn's own definitions say that a string has the format of a number.
	config := rest.CopyConfig(s.options.Config)
	config.WarningHandler = rest.NoWarnings{}

	_, err = envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		CRDs: missing, Scheme: scheme(), MaxTime: crdTimeout, PollInterval: 50 * time.Millisecond,
	})

	return err
}

// served are the resources of Longhorn's that the API server serves.
func (s *Sim) served() (map[string]bool, error) {
	c, err := discovery.NewDiscoveryClientForConfig(s.options.Config)
	if err != nil {
		return nil, err
	}

	list, err := c.ServerResourcesForGroupVersion(lh.GroupVersion.String())
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}

	served := map[string]bool{}

	if list != nil {
		for _, resource := range list.APIResources {
			served[resource.Name] = true
		}
	}

	return served, nil
}
