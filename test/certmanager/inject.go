// SPDX-License-Identifier: Apache-2.0

package certmanager

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// injectAnnotation names the Certificate, as NAMESPACE/NAME, whose authority clients of a webhook are to trust.
const injectAnnotation = "cert-manager.io/inject-ca-from"

// target is a kind with places for an authority.
type target struct {
	object client.Object
	inject func(object client.Object, authority []byte)
}

func intoValidating(object client.Object, authority []byte) {
	configuration, ok := object.(*admissionregistrationv1.ValidatingWebhookConfiguration)
	if !ok {
		return
	}

	for i := range configuration.Webhooks {
		configuration.Webhooks[i].ClientConfig.CABundle = authority
	}
}

func intoMutating(object client.Object, authority []byte) {
	configuration, ok := object.(*admissionregistrationv1.MutatingWebhookConfiguration)
	if !ok {
		return
	}

	for i := range configuration.Webhooks {
		configuration.Webhooks[i].ClientConfig.CABundle = authority
	}
}

// intoConversion leaves definitions alone that do not convert by webhook, as cert-manager does.
func intoConversion(object client.Object, authority []byte) {
	crd, ok := object.(*apiextensionsv1.CustomResourceDefinition)
	if !ok || crd.Spec.Conversion == nil || crd.Spec.Conversion.Webhook == nil || crd.Spec.Conversion.Webhook.ClientConfig == nil {
		return
	}

	crd.Spec.Conversion.Webhook.ClientConfig.CABundle = authority
}

// injector keeps the authorities in objects of one kind.
type injector struct {
	client.Client
	target target
}

func (r *injector) setUp(mgr ctrl.Manager) error {
	gvk, err := apiutil.GVKForObject(r.target.object, mgr.GetScheme())
	if err != nil {
		return err
	}

	return ctrl.NewControllerManagedBy(mgr).
		Named("ca-injector-"+strings.ToLower(gvk.Kind)).
		For(r.target.object).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.annotated)).
		WithOptions(controller.Options{SkipNameValidation: new(true)}).
		Complete(r)
}

// annotated are the objects that want the authority of the Secret's Certificate.
func (r *injector) annotated(ctx context.Context, secret client.Object) []reconcile.Request {
	gvk, err := apiutil.GVKForObject(r.target.object, r.Scheme())
	if err != nil {
		return nil
	}

	made, err := r.Scheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return nil
	}

	list, ok := made.(client.ObjectList)
	if !ok || r.List(ctx, list) != nil {
		return nil
	}

	wanted := secret.GetNamespace() + "/" + secret.GetAnnotations()[certificateNameAnnotation]

	var requests []reconcile.Request

	_ = meta.EachListItem(list, func(item runtime.Object) error {
		if object, ok := item.(client.Object); ok && object.GetAnnotations()[injectAnnotation] == wanted {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
		}

		return nil
	})

	return requests
}

// Reconcile injects the authority, when the Certificate has one.
func (r *injector) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object, ok := r.target.object.DeepCopyObject().(client.Object)
	if !ok {
		return ctrl.Result{}, reconcile.TerminalError(fmt.Errorf("%T is no object", r.target.object))
	}

	if err := r.Get(ctx, request.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}

	namespace, name, ok := strings.Cut(object.GetAnnotations()[injectAnnotation], "/")
	if !ok {
		return ctrl.Result{}, nil
	}

	authority, err := r.authority(ctx, client.ObjectKey{Namespace: namespace, Name: name})
	if err != nil || len(authority) == 0 {
		return ctrl.Result{}, err
	}

	changed, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return ctrl.Result{}, nil
	}

	r.target.inject(changed, authority)

	if reflect.DeepEqual(object, changed) {
		return ctrl.Result{}, nil
	}

	err = r.Update(ctx, changed)
	if apierrors.IsConflict(err) {
		// Somebody else writes, too: the change leads back here.
		return ctrl.Result{}, nil
	}

	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// authority is that of the Secret which has been issued for a Certificate.
func (r *injector) authority(ctx context.Context, certificate client.ObjectKey) ([]byte, error) {
	secrets := &corev1.SecretList{}
	if err := r.List(ctx, secrets, client.InNamespace(certificate.Namespace)); err != nil {
		return nil, err
	}

	for _, secret := range secrets.Items {
		if secret.Annotations[certificateNameAnnotation] == certificate.Name {
			return bytes.Clone(secret.Data["ca.crt"]), nil
		}
	}

	return nil, nil
}
