// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"

	machinerysecrets "github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	corev1 "k8s.io/api/core/v1"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/cli/manifest"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/secrets"
	"github.com/maesh-dev/ichor/internal/version"
)

// bundle is the secrets of a cluster.
type bundle struct {
	cluster manifest.Ref

	// content is nil until make, when it is a throwaway.
	content *secrets.Bundle

	// contract is the config contract that was pinned for the cluster, or unset.
	contract version.Contract

	// supplied are the cluster's certificate authorities that a user brought along.
	supplied  []*corev1.Secret
	throwaway bool
}

// bundleOf finds the bundle of the machine's cluster: the Secret that the controllers keep it in, else the user's own, else one
// that is still to be made.
func (r *Renderer) bundleOf(subject *Subject, config *bootstrapv1.TalosClusterConfig) (*bundle, error) {
	cluster := manifest.Ref{Kind: machineconfig.KindCluster, Namespace: subject.Cluster.Namespace, Name: subject.Cluster.Name}
	if known, ok := r.bundles[cluster]; ok {
		return known, nil
	}

	found := &bundle{cluster: cluster}

	for _, name := range secrets.AuthorityNames(cluster.Name) {
		if secret := find(r.set.Secrets, cluster.Namespace, name); secret != nil {
			found.supplied = append(found.supplied, secret)
		}
	}

	if err := found.read(r, config); err != nil {
		return nil, err
	}

	r.bundles[cluster] = found

	return found, nil
}

func (b *bundle) read(r *Renderer, config *bootstrapv1.TalosClusterConfig) error {
	own := find(r.set.Secrets, b.cluster.Namespace, secrets.BundleName(b.cluster.Name))

	users, err := r.usersBundle(config)
	if err != nil {
		return err
	}

	switch {
	case own == nil && users == nil:
		b.throwaway = true

		return nil
	case own == nil:
		b.content, _, err = decode(users)
		if err != nil {
			return err
		}

		b.content, err = secrets.Adopt(b.content, b.cluster.Name, b.supplied...)

		return bundleFault(users.Name, err)
	}

	if b.content, b.contract, err = decode(own); err != nil {
		return err
	}

	if err = secrets.CheckSupplied(b.content, b.cluster.Name, b.supplied...); err != nil || users == nil {
		return bundleFault(own.Name, err)
	}

	other, _, err := decode(users)
	if err != nil {
		return err
	}

	return bundleFault(users.Name, secrets.CheckSameBundle(b.content, users.Name, other))
}

// usersBundle is the Secret that a TalosClusterConfig brings the secrets of its cluster in, or nil.
func (r *Renderer) usersBundle(config *bootstrapv1.TalosClusterConfig) (*corev1.Secret, error) {
	if config == nil || config.Spec.SecretsRef == nil {
		return nil, nil
	}

	name := config.Spec.SecretsRef.Name

	secret := find(r.set.Secrets, config.Namespace, name)
	if secret == nil && !r.StandIns {
		return nil, &machineconfig.Error{
			Reason: machineconfig.ReasonInvalidReference,
			Source: machineconfig.Source{
				Layer: machineconfig.LayerBase, Kind: machineconfig.KindTalosClusterConfig, Name: config.Name, Path: "spec.secretsRef",
			},
			Err: fmt.Errorf("secret %q is not among the files: add the file that has it", name),
		}
	}

	return secret, nil
}

func decode(secret *corev1.Secret) (*secrets.Bundle, version.Contract, error) {
	content, contract, err := secrets.FromSecret(secret, machinerysecrets.NewClock())

	return content, contract, bundleFault(secret.Name, err)
}

// bundleFault makes an Error that names a Secret; it is nil without an error.
func bundleFault(secret string, err error) error {
	if err == nil {
		return nil
	}

	return &machineconfig.Error{
		Reason: machineconfig.ReasonInvalidReference,
		Source: machineconfig.Source{Layer: machineconfig.LayerBase, Kind: machineconfig.KindSecret, Name: secret},
		Err:    err,
	}
}

// make makes the secrets of a cluster that came without, and checks those of one that came with.
func (b *bundle) make(contract version.Contract) error {
	if !b.throwaway {
		return bundleFault(secrets.BundleName(b.cluster.Name), secrets.Check(b.content, contract))
	}

	if b.content != nil {
		return nil
	}

	// The other kind of key for service accounts takes a second to make, and makes no difference to be seen.
	content, err := secrets.New(machinerysecrets.NewClock(), contract, secrets.WithECDSAServiceAccountKey())
	if err != nil {
		return fmt.Errorf("make a throwaway secrets bundle: %w", err)
	}

	b.content, err = secrets.Adopt(content, b.cluster.Name, b.supplied...)

	return bundleFault(secrets.BundleName(b.cluster.Name), err)
}
