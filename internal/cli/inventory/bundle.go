// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"errors"
	"fmt"

	machinerysecrets "github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"go.yaml.in/yaml/v4"
	corev1 "k8s.io/api/core/v1"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/cli/manifest"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/version"
)

// BundleName is the name of the Secret with a cluster's secrets bundle.
func BundleName(cluster string) string { return cluster + "-talos" }

// bundle is the secrets of a cluster.
type bundle struct {
	content   *machinerysecrets.Bundle
	contract  string
	throwaway bool
}

// bundleOf finds the bundle of the machine's cluster: the Secret that the controllers keep it in, else the user's own, else one
// that is still to be made.
func (r *Renderer) bundleOf(subject *Subject, config *bootstrapv1.TalosClusterConfig) (*bundle, error) {
	cluster := manifest.Ref{Kind: machineconfig.KindCluster, Namespace: subject.Cluster.Namespace, Name: subject.Cluster.Name}
	if known, ok := r.bundles[cluster]; ok {
		return known, nil
	}

	found, err := r.readBundle(cluster, config)
	if err != nil {
		return nil, err
	}

	r.bundles[cluster] = found

	return found, nil
}

func (r *Renderer) readBundle(cluster manifest.Ref, config *bootstrapv1.TalosClusterConfig) (*bundle, error) {
	source := machineconfig.Source{Layer: machineconfig.LayerBase, Kind: machineconfig.KindSecret, Name: BundleName(cluster.Name)}

	secret := find(r.set.Secrets, cluster.Namespace, source.Name)
	if secret == nil && config != nil && config.Spec.SecretsRef != nil {
		source.Name = config.Spec.SecretsRef.Name

		if secret = find(r.set.Secrets, cluster.Namespace, source.Name); secret == nil && !r.StandIns {
			return nil, &machineconfig.Error{
				Reason: machineconfig.ReasonInvalidReference,
				Source: machineconfig.Source{Layer: machineconfig.LayerBase, Kind: machineconfig.KindTalosClusterConfig, Name: config.Name, Path: "spec.secretsRef"},
				Err:    fmt.Errorf("secret %q is not among the files: add the file that has it", source.Name),
			}
		}
	}

	if secret == nil {
		return &bundle{throwaway: true}, nil
	}

	content, err := decodeBundle(secret)
	if err != nil {
		source.Path = "data." + bootstrapv1.SecretsBundleKey

		return nil, &machineconfig.Error{Reason: machineconfig.ReasonInvalidReference, Source: source, Err: err}
	}

	return &bundle{content: content}, nil
}

func decodeBundle(secret *corev1.Secret) (*machinerysecrets.Bundle, error) {
	data, ok := secret.Data[bootstrapv1.SecretsBundleKey]
	if !ok {
		return nil, errors.New("the key is missing: it holds a Talos secrets bundle, as talosctl gen secrets writes it")
	}

	content := &machinerysecrets.Bundle{Clock: machinerysecrets.NewClock()}
	if err := yaml.Unmarshal(data, content); err != nil {
		return nil, errors.New("is no Talos secrets bundle, as talosctl gen secrets writes it")
	}

	return content, nil
}

// make makes the secrets of a cluster that came without.
func (b *bundle) make(contract version.Contract) error {
	if b.content != nil {
		return nil
	}

	content, err := machinerysecrets.NewBundle(machinerysecrets.NewClock(), contract.Machinery())
	if err != nil {
		return fmt.Errorf("make a throwaway secrets bundle: %w", err)
	}

	b.content = content

	return nil
}
