// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	stdx509 "crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/siderolabs/crypto/x509"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/version"
)

const (
	// BundleKey is the key of the bundle in its Secret.
	BundleKey = bootstrapv1.SecretsBundleKey

	// TalosconfigKey is the key of the client configuration in its Secret.
	TalosconfigKey = "talosconfig"

	// ConfigContractAnnotation is the config contract of the cluster, on the bundle Secret, and of a machine, on its data Secret. It is
	// there and not only in status because a move of the objects drops status.
	ConfigContractAnnotation = bootstrapv1.ConfigContractAnnotation

	// BootstrapCalledAnnotation names, on the bundle Secret, the Machine on which etcd's bootstrap was called. It is written before the
	// call: a cluster is bootstrapped once in its life, and this outlives the objects' status.
	BootstrapCalledAnnotation = "controlplane.ichor.maesh.dev/bootstrap-called"

	// RotateAnnotation on the talosconfig Secret asks for a new client certificate.
	RotateAnnotation = bootstrapv1.RotateAnnotation

	// RotatedAnnotation is the request that was answered last.
	RotatedAnnotation = bootstrapv1.RotatedAnnotation

	// IssuedCertificateAnnotation is the client certificate that was issued last.
	IssuedCertificateAnnotation = bootstrapv1.IssuedCertificateAnnotation

	bundleSuffix      = secret.Purpose("talos")
	talosconfigSuffix = secret.Purpose("talosconfig")

	// publicKeyType is the PEM type that Kubernetes reads the public key of service accounts in.
	publicKeyType = "PUBLIC KEY"
)

// authorities are the Secrets that Cluster API names, with what of the bundle they hold.
var authorities = []struct {
	purpose secret.Purpose
	pair    func(*Bundle) **x509.PEMEncodedCertificateAndKey
}{
	{secret.ClusterCA, func(b *Bundle) **x509.PEMEncodedCertificateAndKey { return &b.Certs.K8s }},
	{secret.EtcdCA, func(b *Bundle) **x509.PEMEncodedCertificateAndKey { return &b.Certs.Etcd }},
	{secret.FrontProxyCA, func(b *Bundle) **x509.PEMEncodedCertificateAndKey { return &b.Certs.K8sAggregator }},
}

// BundleName is the name of the Secret with a cluster's bundle.
func BundleName(cluster string) string { return secret.Name(cluster, bundleSuffix) }

// TalosconfigName is the name of the Secret with a cluster's client configuration for the Talos API.
func TalosconfigName(cluster string) string { return secret.Name(cluster, talosconfigSuffix) }

// AuthorityNames are the names of the Secrets that AuthoritySecrets makes, in its order: <cluster>-ca, -etcd, -proxy, -sa. A user may
// have made any of them beforehand; Adopt takes those in.
func AuthorityNames(cluster string) []string {
	names := make([]string, 0, len(authorities)+1)
	for _, authority := range authorities {
		names = append(names, secret.Name(cluster, authority.purpose))
	}

	return append(names, secret.Name(cluster, secret.ServiceAccount))
}

// OwnNames are the names of all Secrets of a cluster: the bundle, the certificate authorities and keys that Cluster API names, and the
// client configurations for Talos and Kubernetes.
func OwnNames(cluster string) []string {
	return append(AuthorityNames(cluster), BundleName(cluster), TalosconfigName(cluster), secret.Name(cluster, secret.Kubeconfig))
}

// ownSuffixes are what the names of the Secrets that are made of a bundle, and of the bundle's, end in.
var ownSuffixes = append(AuthorityNames(""), BundleName(""), TalosconfigName(""))

// ClusterOf returns the cluster whose bundle, certificate authority, key or talosconfig a Secret of the name would be, and whether it would
// be one at all.
func ClusterOf(name string) (string, bool) {
	for _, suffix := range ownSuffixes {
		if cluster, found := strings.CutSuffix(name, suffix); found && cluster != "" {
			return cluster, true
		}
	}

	return "", false
}

// reservedSuffixes are what the names of all Secrets end in that Cluster API and its providers look for by a cluster's name.
var reservedSuffixes = append(OwnNames(""), secret.Name("", secret.APIServerEtcdClient))

// ReservedFor returns the cluster that would take a Secret of the name for its own, whether it exists or not: for its bundle, an authority, a
// key, a kubeconfig or a talosconfig. The bootstrap data of a machine must not have such a name.
func ReservedFor(name string) (cluster string, reserved bool) {
	for _, suffix := range reservedSuffixes {
		if cluster, found := strings.CutSuffix(name, suffix); found && cluster != "" {
			return cluster, true
		}
	}

	return "", false
}

// MachineOf returns the bootstrap config whose machine's data the Secret holds, as "TalosConfig w-1"; it is empty when it holds none. The
// data of other bootstrap providers counts, too.
func MachineOf(object *corev1.Secret) string {
	controller := metav1.GetControllerOf(object)
	if controller == nil || controller.Name != object.Name || !strings.HasPrefix(controller.APIVersion, "bootstrap.") {
		return ""
	}

	return controller.Kind + " " + controller.Name
}

// IsOwn tells a Secret of any cluster, or the bootstrap data of a machine, from what users keep in Secrets: by its type, which Cluster API
// gives to all of these, by what it belongs to, or by its name and the cluster's label, as Secrets from elsewhere have them.
func IsOwn(object *corev1.Secret) bool {
	if object.Type == clusterv1.ClusterSecretType {
		return true
	}

	cluster, labelled := object.Labels[clusterv1.ClusterNameLabel]
	if labelled && slices.Contains(OwnNames(cluster), object.Name) {
		return true
	}

	return slices.ContainsFunc(object.OwnerReferences, func(owner metav1.OwnerReference) bool {
		group, _, _ := strings.Cut(owner.APIVersion, "/")

		return group == bootstrapv1.GroupVersion.Group || labelled && strings.HasSuffix(group, clusterv1.GroupVersion.Group)
	})
}

// BundleSecret is the Secret <cluster>-talos with the bundle, and with the cluster's config contract pinned on it unless the contract is
// unset. Create it, and on a conflict read the one that is there: whoever comes first decides for all.
func BundleSecret(cluster *clusterv1.Cluster, bundle *Bundle, pinned version.Contract) (*corev1.Secret, error) {
	data, err := Encode(bundle)
	if err != nil {
		return nil, err
	}

	object := clusterSecret(cluster, BundleName(cluster.Name), map[string][]byte{BundleKey: data})
	if !pinned.IsZero() {
		object.Annotations = map[string]string{ConfigContractAnnotation: pinned.String()}
	}

	return object, nil
}

// FromSecret reads the bundle and the pinned config contract from a bundle Secret. The contract is unset if none is pinned, as on the
// Secrets of the existing providers. The error names Secret and key.
func FromSecret(object *corev1.Secret, clock Clock) (*Bundle, version.Contract, error) {
	data := object.Data[BundleKey]
	if len(data) == 0 {
		return nil, version.Contract{}, fmt.Errorf("secret %s: key %q is missing", object.Name, BundleKey)
	}

	bundle, err := Decode(data, clock)
	if err != nil {
		return nil, version.Contract{}, fmt.Errorf("secret %s: key %q: %w", object.Name, BundleKey, err)
	}

	text, found := object.Annotations[ConfigContractAnnotation]
	if !found {
		return bundle, version.Contract{}, nil
	}

	pinned, err := version.ParseContract(text)
	if err != nil {
		return nil, version.Contract{}, fmt.Errorf("secret %s: annotation %s: %w", object.Name, ConfigContractAnnotation, err)
	}

	return bundle, pinned, nil
}

// AuthoritySecrets are the Secrets <cluster>-ca, -etcd, -proxy and -sa, in that order, as Cluster API wants them: a certificate and its
// key, and for -sa the public and the private key of service accounts. Cluster API makes kubeconfigs from -ca. The bundle must have
// passed Check.
func AuthoritySecrets(cluster *clusterv1.Cluster, bundle *Bundle) ([]*corev1.Secret, error) {
	objects := make([]*corev1.Secret, 0, len(authorities)+1)

	for _, authority := range authorities {
		pair := *authority.pair(bundle)
		objects = append(objects, clusterSecret(cluster, secret.Name(cluster.Name, authority.purpose), map[string][]byte{
			secret.TLSCrtDataName: pair.Crt, secret.TLSKeyDataName: pair.Key,
		}))
	}

	private := bundle.Certs.K8sServiceAccount.Key

	public, err := publicKeyOf(private)
	if err != nil {
		return nil, fmt.Errorf("secrets bundle: certs.k8sserviceaccount.key %w", err)
	}

	return append(objects, clusterSecret(cluster, secret.Name(cluster.Name, secret.ServiceAccount), map[string][]byte{
		secret.TLSCrtDataName: public, secret.TLSKeyDataName: private,
	})), nil
}

// TalosconfigSecret is the Secret <cluster>-talosconfig with a client configuration that Talosconfig made.
func TalosconfigSecret(cluster *clusterv1.Cluster, talosconfig []byte) (*corev1.Secret, error) {
	object := clusterSecret(cluster, TalosconfigName(cluster.Name), map[string][]byte{})

	return object, SetTalosconfig(object, cluster.Name, talosconfig)
}

// clusterSecret belongs to the Cluster: it is deleted with it, and clusterctl move takes it along. The label is what Cluster API's caches
// select Secrets by.
func clusterSecret(cluster *clusterv1.Cluster, name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster.Namespace,
			Name:      name,
			Labels:    map[string]string{clusterv1.ClusterNameLabel: cluster.Name},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: cluster.Name, UID: cluster.UID,
			}},
		},
		Type: clusterv1.ClusterSecretType,
		Data: data,
	}
}

func publicKeyOf(private []byte) ([]byte, error) {
	key, err := parseKey(private)
	if err != nil {
		return nil, err
	}

	der, err := stdx509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, errors.New("has no public key that can be encoded")
	}

	return pem.EncodeToMemory(&pem.Block{Type: publicKeyType, Bytes: der}), nil
}
