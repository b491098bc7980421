// SPDX-License-Identifier: Apache-2.0

package taloscontrolplane

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/certs"
	capicontroller "sigs.k8s.io/cluster-api/util/controller"
	"sigs.k8s.io/cluster-api/util/kubeconfig"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/maesh-dev/ichor/api/controlplane/v1alpha1"
	"github.com/maesh-dev/ichor/internal/secrets"
)

var secretGVK = capicontroller.StructuredObject(corev1.SchemeGroupVersion, "Secret")

// rotation is how a user asks for a new kubeconfig.
var rotation = secrets.Rotation{Ask: controlplanev1.RotateAnnotation, Answered: controlplanev1.RotatedAnnotation}

// MetadataAnnotations are what Metadata must keep of annotations.
func MetadataAnnotations() []string { return []string{rotation.Ask, rotation.Answered} }

// ensureKubeconfig sees to the Secret with the administrator's kubeconfig. A user's own is left alone. It is made anew at half of its
// certificate's life, when the authority changes, when the endpoint does, and when a user asks for it.
func (r *Reconciler) ensureKubeconfig(ctx context.Context, seen *observation) error {
	endpoint := seen.cluster.Spec.ControlPlaneEndpoint
	if !endpoint.IsValid() {
		return nil
	}

	authority, err := r.authority(ctx, seen)
	if authority == nil || err != nil {
		return err
	}

	key := client.ObjectKey{Namespace: seen.cluster.Namespace, Name: secret.Name(seen.cluster.Name, secret.Kubeconfig)}
	existing := &corev1.Secret{}

	err = r.Client.Get(ctx, key, existing)

	switch {
	case apierrors.IsNotFound(err):
		return r.createKubeconfig(ctx, seen, authority, key)
	case err != nil:
		return fmt.Errorf("secret %s: %w", key.Name, err)
	case existing.Type != clusterv1.ClusterSecretType:
		seen.noteUsersOwn(existing)

		return nil
	}

	return r.renewKubeconfig(ctx, seen, authority, existing)
}

// authority is the Secret with the cluster's Kubernetes authority, nil as long as there is none that can be used.
func (r *Reconciler) authority(ctx context.Context, seen *observation) (*corev1.Secret, error) {
	if seen.bundle == nil || seen.secretsFault != nil {
		return nil, nil //nolint:nilerr // The condition CertificatesAvailable tells of the fault.
	}

	found := &corev1.Secret{}

	err := r.Client.Get(ctx, client.ObjectKey{Namespace: seen.cluster.Namespace, Name: secret.Name(seen.cluster.Name, secret.ClusterCA)}, found)

	switch {
	case err == nil:
		return found, nil
	case apierrors.IsNotFound(err): // it is about to be made of the bundle, and its arrival is watched
		return nil, nil
	default:
		return nil, fmt.Errorf("secret %s: %w", secret.Name(seen.cluster.Name, secret.ClusterCA), err)
	}
}

// noteUsersOwn notes that a user asks for another kubeconfig in a Secret that is never written.
func (o *observation) noteUsersOwn(secret metav1.Object) {
	if rotation.Asked(secret) {
		o.kubeconfigNote = fmt.Sprintf("Secret %s is a user's own and is left as it is, although %s: delete it to have a new one made, or remove the annotation",
			secret.GetName(), rotation.Reason())
	}
}

func (r *Reconciler) createKubeconfig(ctx context.Context, seen *observation, authority *corev1.Secret, key client.ObjectKey) error {
	// A user's Secret without the label is in no cache but that of metadata.
	unlabelled := &metav1.PartialObjectMetadata{}
	unlabelled.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))

	if err := r.Metadata.Get(ctx, key, unlabelled); !apierrors.IsNotFound(err) {
		if err == nil {
			seen.noteUsersOwn(unlabelled)
		}

		return err
	}

	content, err := newKubeconfig(seen.cluster, authority)
	if err != nil {
		return fmt.Errorf("secret %s: %w", key.Name, err)
	}

	owner := *metav1.NewControllerRef(seen.controlPlane, controlplanev1.GroupVersion.WithKind(talosControlPlaneKind))
	made := kubeconfig.GenerateSecretWithOwner(client.ObjectKeyFromObject(seen.cluster), content, owner)

	if err := r.Client.Create(ctx, made); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return nil // the cache brings it
		}

		return fmt.Errorf("secret %s: create: %w", key.Name, secrets.WithoutWords(err))
	}

	r.deferrer.DeferNextReconcileUntilCacheUpToDate(seen.controlPlane, secretGVK, made.ResourceVersion)
	r.recordKubeconfig(seen, made, eventKubeconfigCreated, "Made Secret %s, with which the cluster's administrator reaches Kubernetes", made.Name)

	return nil
}

func (r *Reconciler) renewKubeconfig(ctx context.Context, seen *observation, authority, existing *corev1.Secret) error {
	wanted := existing.DeepCopy()
	owner := *metav1.NewControllerRef(seen.controlPlane, controlplanev1.GroupVersion.WithKind(talosControlPlaneKind))

	// A restored backup has the reference with another UID; Cluster API makes one itself for a cluster without a control-plane provider.
	if !util.HasExactOwnerRef(wanted.OwnerReferences, owner) {
		if controller := metav1.GetControllerOf(wanted); controller != nil {
			wanted.OwnerReferences = util.RemoveOwnerRef(wanted.OwnerReferences, *controller)
		}

		wanted.OwnerReferences = util.EnsureOwnerRef(wanted.OwnerReferences, owner)
	}

	why := stale(existing.Data[secret.KubeconfigDataName], seen.cluster, authority, r.Clock.Now())
	if why == "" && rotation.Asked(existing) {
		why = rotation.Reason()
	}

	settled := rotation.Settle(wanted)

	switch {
	case why != "" && ptr.Deref(existing.Immutable, false):
		return fmt.Errorf("secret %s: %s, but the Secret is immutable: delete it, and a new one is made", existing.Name, why)
	case why != "":
		content, err := newKubeconfig(seen.cluster, authority)
		if err != nil {
			return fmt.Errorf("secret %s: %w", existing.Name, err)
		}

		wanted.Data = map[string][]byte{secret.KubeconfigDataName: content}
	case !settled && util.HasExactOwnerRef(existing.OwnerReferences, owner):
		return nil
	}

	err := r.Client.Patch(ctx, wanted, client.MergeFromWithOptions(existing, client.MergeFromWithOptimisticLock{}))

	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil // the cache brings what it is now
	case err != nil:
		return fmt.Errorf("secret %s: renew: %w", existing.Name, secrets.WithoutWords(err))
	}

	r.deferrer.DeferNextReconcileUntilCacheUpToDate(seen.controlPlane, secretGVK, wanted.ResourceVersion)

	if why != "" {
		r.recordKubeconfig(seen, wanted, eventKubeconfigRenewed, "Made a new kubeconfig in Secret %s: %s", wanted.Name, why)
	}

	return nil
}

// newKubeconfig makes a kubeconfig with a new client certificate.
func newKubeconfig(cluster *clusterv1.Cluster, authority *corev1.Secret) ([]byte, error) {
	certificate, err := certs.DecodeCertPEM(authority.Data[secret.TLSCrtDataName])
	if err != nil || certificate == nil {
		return nil, fmt.Errorf("secret %s: key %q: it is no certificate", authority.Name, secret.TLSCrtDataName)
	}

	key, err := certs.DecodePrivateKeyPEM(authority.Data[secret.TLSKeyDataName])
	if err != nil || key == nil {
		return nil, fmt.Errorf("secret %s: key %q: it is no private key", authority.Name, secret.TLSKeyDataName)
	}

	config, err := kubeconfig.New(cluster.Name, serverOf(cluster), certificate, key)
	if err != nil {
		return nil, fmt.Errorf("make a kubeconfig: %w", err)
	}

	return clientcmd.Write(*config)
}

func serverOf(cluster *clusterv1.Cluster) string {
	return "https://" + cluster.Spec.ControlPlaneEndpoint.String()
}

// stale says why a kubeconfig must be made anew; empty when it need not.
func stale(content []byte, cluster *clusterv1.Cluster, authority *corev1.Secret, now time.Time) string {
	config, err := clientcmd.Load(content)
	if err != nil {
		return "it cannot be read"
	}

	found, ok := config.Clusters[cluster.Name]

	switch {
	case !ok:
		return "it does not have the cluster"
	case found.Server != serverOf(cluster):
		return "the endpoint has changed"
	case !sameCertificate(found.CertificateAuthorityData, authority.Data[secret.TLSCrtDataName]):
		return "the certificate authority has changed"
	case len(config.AuthInfos) == 0:
		return "it has no user"
	}

	for _, user := range config.AuthInfos {
		if why := staleUser(user, authority, now); why != "" {
			return why
		}
	}

	return ""
}

func staleUser(user *api.AuthInfo, authority *corev1.Secret, now time.Time) string {
	certificate, err := first(user.ClientCertificateData)
	if err != nil {
		return "its client certificate cannot be read"
	}

	parent, err := first(authority.Data[secret.TLSCrtDataName])
	if err != nil {
		return "" // that is not the kubeconfig's fault
	}

	// What Cluster API issues is valid from when the authority is, however old that is: only the end says when it was made.
	switch {
	case certificate.CheckSignatureFrom(parent) != nil:
		return "the certificate authority has changed"
	case now.After(certificate.NotAfter.Add(-certs.ClientCertificateRenewalDuration)):
		return "half of the life of its client certificate is over"
	default:
		return ""
	}
}

func first(content []byte) (*x509.Certificate, error) {
	all, err := cert.ParseCertsPEM(content)
	if err != nil {
		return nil, err
	}

	if len(all) == 0 {
		return nil, errors.New("no certificate")
	}

	return all[0], nil
}

func sameCertificate(a, b []byte) bool {
	one, err := first(a)
	if err != nil {
		return false
	}

	other, err := first(b)

	return err == nil && bytes.Equal(one.Raw, other.Raw)
}
