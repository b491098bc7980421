// SPDX-License-Identifier: Apache-2.0

package certmanager

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/cluster-api/util/certs"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	certificateNameAnnotation = "cert-manager.io/certificate-name"

	// defaultDuration and renewal are cert-manager's: 90 days, renewed when a third of them is left.
	defaultDuration = 90 * 24 * time.Hour
	renewalShare    = 3

	rsaBits    = 2048
	serialBits = 127
)

// spec is what of a Certificate's spec is heeded.
type spec struct {
	SecretName string           `json:"secretName"`
	DNSNames   []string         `json:"dnsNames"`
	Duration   *metav1.Duration `json:"duration"`
	IssuerRef  struct {
		Group string `json:"group"`
		Kind  string `json:"kind"`
		Name  string `json:"name"`
	} `json:"issuerRef"`
	PrivateKey struct {
		Algorithm string `json:"algorithm"`
	} `json:"privateKey"`
	Subject struct {
		Organizations []string `json:"organizations"`
	} `json:"subject"`
}

func (s spec) duration() time.Duration {
	if s.Duration == nil {
		return defaultDuration
	}

	return s.Duration.Duration
}

// issuer keeps the Secrets of Certificates.
type issuer struct{ client.Client }

func (r *issuer) setUp(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("certificates").
		For(newObject(certificateGVK)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(certificateOf)).
		WithOptions(controller.Options{SkipNameValidation: new(true)}).
		Complete(r)
}

func certificateOf(_ context.Context, secret client.Object) []reconcile.Request {
	name, ok := secret.GetAnnotations()[certificateNameAnnotation]
	if !ok {
		return nil
	}

	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: secret.GetNamespace(), Name: name}}}
}

// Reconcile issues a certificate unless there is one that fits.
func (r *issuer) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	certificate := newObject(certificateGVK)
	if err := r.Get(ctx, request.NamespacedName, certificate); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}

	if certificate.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, nil
	}

	var wanted spec

	content, _, err := unstructured.NestedMap(certificate.Object, "spec")
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(content, &wanted)
	}

	if err != nil {
		return ctrl.Result{}, reconcile.TerminalError(fmt.Errorf("spec: %w", err))
	}

	if refusal, err := r.refusal(ctx, certificate.GetNamespace(), wanted); err != nil || refusal != "" {
		// A missing Issuer may come: nothing else tells of it.
		return ctrl.Result{RequeueAfter: time.Second}, errorOr(err, func() error {
			return r.report(ctx, certificate, metav1.ConditionFalse, "DoesNotExist", refusal)
		})
	}

	if err := r.keep(ctx, certificate, wanted); err != nil {
		return ctrl.Result{}, err
	}

	err = r.report(ctx, certificate, metav1.ConditionTrue, "Ready", "Certificate is up to date and has not expired")

	return ctrl.Result{RequeueAfter: wanted.duration() / renewalShare}, err
}

func errorOr(err error, then func() error) error {
	if err != nil {
		return err
	}

	return then()
}

// refusal says why a certificate cannot be issued.
func (r *issuer) refusal(ctx context.Context, namespace string, wanted spec) (string, error) {
	reference := wanted.IssuerRef
	if (reference.Kind != "" && reference.Kind != issuerGVK.Kind) || (reference.Group != "" && reference.Group != groupVersion.Group) {
		return fmt.Sprintf("issuerRef %s %s: only Issuers of %s are played here", reference.Kind, reference.Name, groupVersion.Group), nil
	}

	err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: reference.Name}, newObject(issuerGVK))
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf("Referenced Issuer %q not found", reference.Name), nil
	}

	return "", err
}

func (r *issuer) keep(ctx context.Context, certificate *unstructured.Unstructured, wanted spec) error {
	secret := &corev1.Secret{}
	err := r.Get(ctx, client.ObjectKey{Namespace: certificate.GetNamespace(), Name: wanted.SecretName}, secret)

	if client.IgnoreNotFound(err) != nil {
		return err
	}

	if err == nil && fits(secret, wanted) {
		return nil
	}

	data, issueErr := issue(wanted)
	if issueErr != nil {
		return fmt.Errorf("issue: %w", issueErr)
	}

	if apierrors.IsNotFound(err) {
		return r.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: certificate.GetNamespace(), Name: wanted.SecretName,
				Annotations: map[string]string{certificateNameAnnotation: certificate.GetName()},
			},
			Type: corev1.SecretTypeTLS,
			Data: data,
		})
	}

	secret = secret.DeepCopy()
	secret.Data = data
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, certificateNameAnnotation, certificate.GetName())

	return r.Update(ctx, secret)
}

// fits tells whether a Secret has what a Certificate asks for, with time left.
func fits(secret *corev1.Secret, wanted spec) bool {
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return false
	}

	return slices.Equal(pair.Leaf.DNSNames, wanted.DNSNames) &&
		slices.Equal(pair.Leaf.Subject.Organization, wanted.Subject.Organizations) &&
		time.Until(pair.Leaf.NotAfter) > wanted.duration()/renewalShare &&
		bytes.Equal(secret.Data["ca.crt"], secret.Data[corev1.TLSCertKey])
}

// issue makes a self-signed certificate for a server.
func issue(wanted spec) (map[string][]byte, error) {
	key, err := newKey(wanted.PrivateKey.Algorithm)
	if err != nil {
		return nil, err
	}

	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, err
	}

	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{Organization: wanted.Subject.Organizations},
		DNSNames:     wanted.DNSNames,
		NotBefore:    now.Add(-time.Minute),
		NotAfter:     now.Add(wanted.duration()),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},

		BasicConstraintsValid: true,
	}

	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}

	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}

	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, err
	}

	certificate := certs.EncodeCertPEM(parsed)

	return map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: encoded, "ca.crt": certificate}, nil
}

func newKey(algorithm string) (crypto.Signer, error) {
	if algorithm == "ECDSA" {
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}

	return rsa.GenerateKey(rand.Reader, rsaBits)
}

// report writes the condition Ready, once for each change.
func (r *issuer) report(ctx context.Context, certificate *unstructured.Unstructured, status metav1.ConditionStatus, reason, message string) error {
	condition := map[string]any{
		"type": "Ready", "status": string(status), "reason": reason, "message": message, "observedGeneration": certificate.GetGeneration(),
	}

	old, _, err := unstructured.NestedSlice(certificate.Object, "status", "conditions")
	if err != nil {
		return err
	}

	if len(old) == 1 {
		if before, ok := old[0].(map[string]any); ok {
			delete(before, "lastTransitionTime")

			if fmt.Sprint(before) == fmt.Sprint(condition) {
				return nil
			}
		}
	}

	changed := certificate.DeepCopy()
	condition["lastTransitionTime"] = time.Now().UTC().Format(time.RFC3339)

	if err := unstructured.SetNestedSlice(changed.Object, []any{condition}, "status", "conditions"); err != nil {
		return err
	}

	return client.IgnoreNotFound(r.Status().Patch(ctx, changed, client.MergeFrom(certificate)))
}
