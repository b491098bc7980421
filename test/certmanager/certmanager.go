// SPDX-License-Identifier: Apache-2.0

package certmanager

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// CRDs are the definitions, in YAML, which must be served before Start.
//
//go:embed crds.yaml
var CRDs []byte

// syncTimeout bounds the wait for the caches, on a machine that does other things too.
const syncTimeout = time.Minute

var (
	groupVersion   = schema.GroupVersion{Group: "cert-manager.io", Version: "v1"}
	certificateGVK = groupVersion.WithKind("Certificate")
	issuerGVK      = groupVersion.WithKind("Issuer")
)

// Start begins to issue and to inject, with the rights of config, and returns a function that ends it.
func Start(ctx context.Context, config *rest.Config) (stop func() error, err error) {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))

	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: "0"},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Field: fields.OneTermEqualSelector("type", string(corev1.SecretTypeTLS))},
		}},
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	if err != nil {
		return nil, fmt.Errorf("cert-manager: %w", err)
	}

	if err := (&issuer{mgr.GetClient()}).setUp(mgr); err != nil {
		return nil, fmt.Errorf("cert-manager: %w", err)
	}

	for _, target := range []target{
		{object: &admissionregistrationv1.ValidatingWebhookConfiguration{}, inject: intoValidating},
		{object: &admissionregistrationv1.MutatingWebhookConfiguration{}, inject: intoMutating},
		{object: &apiextensionsv1.CustomResourceDefinition{}, inject: intoConversion},
	} {
		if err := (&injector{mgr.GetClient(), target}).setUp(mgr); err != nil {
			return nil, fmt.Errorf("cert-manager: %w", err)
		}
	}

	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)

	go func() { ended <- mgr.Start(ctx) }()

	synced, stopWaiting := context.WithTimeout(ctx, syncTimeout)
	defer stopWaiting()

	if !mgr.GetCache().WaitForCacheSync(synced) {
		cancel()

		return nil, fmt.Errorf("cert-manager: the caches do not fill: %w", <-ended)
	}

	return func() error {
		cancel()

		return <-ended
	}, nil
}

func newObject(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)

	return object
}
