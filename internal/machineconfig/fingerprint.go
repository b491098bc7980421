// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/siderolabs/crypto/x509"
	machinerysecrets "github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	machineconfigv1alpha1 "github.com/maesh-dev/ichor/api/machineconfig/v1alpha1"
	"github.com/maesh-dev/ichor/internal/storage"
)

// fingerprintForm is what the fingerprint's key is derived for. Fingerprints are kept on objects, and another form makes every one of them
// differ: what is added to an input must leave the encoding of those that do not have it as it is.
const fingerprintForm = "ichor: inputs of a machine config, form 1"

// Fingerprint stands for what the config is rendered from, in hex: it is the same for the same content, whichever build asks, after a restart
// and in another management cluster, and another one as soon as anything changes that may go in. UIDs and versions of objects do not count.
//
// It may be shown. The content holds secrets, some of which could be guessed; therefore it is hashed with a key that is derived from the
// private key of the cluster's Talos authority, without which no guess can be tried. An error is one that Render gives too.
func Fingerprint(in Input) (string, error) {
	if in.Bundle == nil || in.Bundle.Certs == nil || in.Bundle.Certs.OS == nil {
		return "", errors.New("the secrets bundle is missing")
	}

	facts, err := inputFactsOf(&in)
	if err != nil {
		return "", err
	}

	encoded, err := json.Marshal(facts)
	if err != nil {
		return "", errors.New("the inputs cannot be encoded")
	}

	key, err := hkdf.Key(sha256.New, in.Bundle.Certs.OS.Key, nil, fingerprintForm, sha256.Size)
	if err != nil {
		return "", fmt.Errorf("key of the fingerprint: %w", err)
	}

	sum := hmac.New(sha256.New, key)
	sum.Write(encoded)

	return hex.EncodeToString(sum.Sum(nil)), nil
}

// inputFacts are what goes into the fingerprint. The names are those of its form, and independent of the types' own.
type inputFacts struct {
	Contract       string                              `json:"contract"`
	ClusterName    string                              `json:"clusterName"`
	Endpoint       clusterv1.APIEndpoint               `json:"endpoint"`
	Network        clusterv1.ClusterNetwork            `json:"network"`
	Machine        machineFacts                        `json:"machine"`
	TalosConfig    bootstrapv1.TalosConfigSpec         `json:"talosConfig"`
	ClusterConfig  *bootstrapv1.TalosClusterConfigSpec `json:"clusterConfig,omitempty"`
	Storage        *bootstrapv1.TalosStorageSpec       `json:"storage,omitempty"`
	Patches        []patchFacts                        `json:"patches,omitempty"`
	Registries     map[string][]string                 `json:"registries,omitempty"`
	AcceptedCAs    [][]string                          `json:"acceptedCAs,omitempty"`
	Bundle         bundleFacts                         `json:"bundle"`
	ReferencedKeys []keyFacts                          `json:"referencedKeys,omitempty"`
}

type machineFacts struct {
	Name               string                   `json:"name"`
	Kind               string                   `json:"kind"`
	Labels             map[string]string        `json:"labels,omitempty"`
	KubernetesVersion  string                   `json:"kubernetesVersion"`
	InfrastructureName string                   `json:"infrastructureName,omitempty"`
	Taints             []clusterv1.MachineTaint `json:"taints,omitempty"`
	ControlPlane       bool                     `json:"controlPlane,omitempty"`
}

type patchFacts struct {
	Name string                           `json:"name"`
	Spec bootstrapv1.TalosConfigPatchSpec `json:"spec"`
}

// keyFacts is the value of one key of a Secret or ConfigMap; other keys do not count.
type keyFacts struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Key     string `json:"key"`
	Value   []byte `json:"value,omitempty"`
	Missing bool   `json:"missing,omitempty"`
}

// bundleFacts are the values of the bundle, apart from its encoding, to which a newer machinery may add.
type bundleFacts struct {
	ID, Secret, BootstrapToken, TrustdToken string
	AESCBC, Secretbox                       string `json:",omitempty"`
	Authorities                             [][2][]byte
	ServiceAccountKey                       []byte
}

func inputFactsOf(in *Input) (inputFacts, error) {
	facts := inputFacts{
		Contract:    in.Contract.String(),
		ClusterName: in.Cluster.Name,
		Endpoint:    in.Cluster.Spec.ControlPlaneEndpoint,
		Network:     in.Cluster.Spec.ClusterNetwork,
		Machine:     machineFacts(in.Machine),
		TalosConfig: in.TalosConfig.Spec,
		Registries:  in.Credentials.registryFacts(),
		AcceptedCAs: in.Credentials.acceptedCAs.facts(),
		Bundle:      bundleFactsOf(in.Bundle),
	}

	if in.ClusterConfig != nil {
		facts.ClusterConfig = &in.ClusterConfig.Spec
	}

	governing, err := storage.Select(in.Cluster, in.Storages, in.Machine.Labels)
	if err != nil {
		return facts, storageFault(err)
	}

	if governing != nil {
		facts.Storage = &governing.Spec
	}

	patches, err := selectPatches(in)
	if err != nil {
		return facts, err
	}

	for _, patch := range patches {
		facts.Patches = append(facts.Patches, patchFacts{patch.object.Name, patch.object.Spec})
		facts.ReferencedKeys = append(facts.ReferencedKeys, in.References.factsOf(patch)...)
	}

	return facts, nil
}

// factsOf are the values that a patch refers to, in the order of its documents.
func (r References) factsOf(patch *Patch) []keyFacts {
	var facts []keyFacts

	add := func(source machineconfigv1alpha1.Source) {
		value, ok := r.value(source)
		facts = append(facts, keyFacts{Kind: source.Kind, Name: source.Name, Key: source.Key, Value: []byte(value), Missing: !ok})
	}

	for _, i := range patch.waiting {
		for _, reference := range patch.object.Spec.Documents[i].References() {
			add(reference.Source)
		}
	}

	return facts
}

func (c Credentials) registryFacts() map[string][]string {
	facts := make(map[string][]string, len(c.registries))
	for host, r := range c.registries {
		facts[host] = []string{r.password, r.auth, r.identityToken, r.ca, r.clientCert, r.clientKey}
	}

	return facts
}

func (a acceptedCAs) facts() [][]string {
	if len(slices.Concat(a.talos, a.kubernetes, a.aggregator)) == 0 {
		return nil
	}

	return [][]string{a.talos, a.kubernetes, a.aggregator}
}

func bundleFactsOf(bundle *machinerysecrets.Bundle) bundleFacts {
	var facts bundleFacts

	if bundle.Cluster != nil {
		facts.ID, facts.Secret = bundle.Cluster.ID, bundle.Cluster.Secret
	}

	if bundle.Secrets != nil {
		facts.BootstrapToken = bundle.Secrets.BootstrapToken
		facts.AESCBC, facts.Secretbox = bundle.Secrets.AESCBCEncryptionSecret, bundle.Secrets.SecretboxEncryptionSecret
	}

	if bundle.TrustdInfo != nil {
		facts.TrustdToken = bundle.TrustdInfo.Token
	}

	certs := bundle.Certs
	for _, pair := range []*x509.PEMEncodedCertificateAndKey{certs.OS, certs.Etcd, certs.K8s, certs.K8sAggregator} {
		if pair == nil {
			pair = &x509.PEMEncodedCertificateAndKey{}
		}

		facts.Authorities = append(facts.Authorities, [2][]byte{pair.Crt, pair.Key})
	}

	if certs.K8sServiceAccount != nil {
		facts.ServiceAccountKey = certs.K8sServiceAccount.Key
	}

	return facts
}
