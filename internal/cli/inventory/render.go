// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/cli/manifest"
	"github.com/maesh-dev/ichor/internal/machineconfig"
	"github.com/maesh-dev/ichor/internal/secrets"
)

// Renderer renders the configs of a set's machines. It is for one goroutine.
type Renderer struct {
	set     *manifest.Set
	patches map[string][]*machineconfig.Patch
	bundles map[manifest.Ref]*bundle

	// StandIns lets a render go on without what is often not kept beside manifests: Secrets, and an endpoint that the
	// infrastructure provider sets. What is made up in their place is told in Result.StandIns.
	StandIns bool
}

// Result is the rendered config of a machine.
type Result struct {
	machineconfig.Config

	// ClusterConfig that targets the machine's Cluster, or nil.
	ClusterConfig *bootstrapv1.TalosClusterConfig

	// ThrowawayBundle tells that the cluster's secrets were made for this output alone.
	ThrowawayBundle bool

	// StandIns are the objects for which something was made up, and why.
	StandIns []StandIn

	bundle *secrets.Bundle
}

// StandIn is something made up in the place of what is not among the files.
type StandIn struct {
	Ref     manifest.Ref
	Field   string
	Message string
}

// NewRenderer prepares renders of the set's machines.
func NewRenderer(set *manifest.Set) *Renderer {
	r := &Renderer{set: set, patches: map[string][]*machineconfig.Patch{}, bundles: map[manifest.Ref]*bundle{}}

	for _, patch := range set.TalosConfigPatches {
		r.patches[patch.Namespace] = append(r.patches[patch.Namespace], machineconfig.ParsePatch(patch))
	}

	return r
}

// AllPatches are the patches by namespace, ready to be merged.
func (r *Renderer) AllPatches() map[string][]*machineconfig.Patch { return r.patches }

// Render makes the config of one machine. The errors are those of the renderer; see machineconfig.Errors.
func (r *Renderer) Render(subject *Subject, provenance bool) (Result, error) {
	var result Result

	clusterConfig, err := machineconfig.SelectClusterConfig(subject.Cluster, in(r.set.TalosClusterConfigs, subject.Ref.Namespace))
	if err != nil {
		return result, err
	}

	result.ClusterConfig = clusterConfig

	bundle, err := r.bundleOf(subject, clusterConfig)
	if err != nil {
		return result, err
	}

	contract, err := machineconfig.SelectContract(subject.TalosConfig, clusterConfig, machineconfig.Pins{
		Machine: machineconfig.MachinePin(subject.TalosConfig, subject.Machine),
		Cluster: bundle.contract.String(),
	})
	if err != nil {
		return result, err
	}

	if err = bundle.make(contract); err != nil {
		return result, err
	}

	result.ThrowawayBundle, result.bundle = bundle.throwaway, bundle.content

	credentials, standIns, err := r.credentials(clusterConfig, bundle)
	if err != nil {
		return result, err
	}

	cluster, endpoint := r.cluster(subject)
	result.StandIns = append(standIns, endpoint...)

	input := machineconfig.Input{
		Cluster:       cluster,
		Machine:       subject.Machine,
		Bundle:        bundle.content,
		Contract:      contract,
		TalosConfig:   subject.TalosConfig,
		ClusterConfig: clusterConfig,
		Storages:      in(r.set.TalosStorages, subject.Ref.Namespace),
		Patches:       r.patches[subject.Ref.Namespace],
		Credentials:   credentials,
		Provenance:    provenance,
	}

	result.StandIns = append(result.StandIns, r.resolve(&input)...)
	result.Config, err = machineconfig.Render(input)

	return result, err
}

// resolve finds the Secrets and ConfigMaps that the machine's patches refer to. Where that is allowed, a document goes without those that
// are not among the files: nothing that was made up in their place would be sure to be what Talos takes.
func (r *Renderer) resolve(input *machineconfig.Input) []StandIn {
	namespace, values := input.Cluster.Namespace, map[machineconfig.ObjectKey]machineconfig.Object{}

	var missing []machineconfig.ObjectKey

	for _, object := range machineconfig.ReferencedObjects(*input) {
		if content, ok := r.content(namespace, object); ok {
			values[object] = content
		} else {
			missing = append(missing, object)
		}
	}

	input.References = machineconfig.NewReferences(values)

	if !r.StandIns || len(missing) == 0 {
		return nil
	}

	var standIns []StandIn

	input.Patches = slices.Clone(input.Patches)

	for i, patch := range input.Patches {
		for _, object := range missing {
			left, paths := patch.Without(object)
			patch, input.Patches[i] = left, left

			for _, path := range paths {
				standIns = append(standIns, StandIn{
					Ref:     manifest.Ref{Kind: machineconfig.KindTalosConfigPatch, Namespace: namespace, Name: patch.Object().Name},
					Field:   path,
					Message: fmt.Sprintf("refers to %s %q, which is not among the files: the document is not checked", object.Kind, object.Name),
				})
			}
		}
	}

	return standIns
}

// content is what a Secret or ConfigMap holds.
func (r *Renderer) content(namespace string, object machineconfig.ObjectKey) (machineconfig.Object, bool) {
	if object.Kind == machineconfig.KindSecret {
		secret := find(r.set.Secrets, namespace, object.Name)
		if secret == nil {
			return machineconfig.Object{}, false
		}

		return machineconfig.SecretObject(secret), true
	}

	configMap := find(r.set.ConfigMaps, namespace, object.Name)
	if configMap == nil {
		return machineconfig.Object{}, false
	}

	return machineconfig.ConfigMapObject(configMap), true
}

// cluster is the machine's Cluster, with a made-up endpoint where that is allowed and needed.
func (r *Renderer) cluster(subject *Subject) (*clusterv1.Cluster, []StandIn) {
	endpoint := subject.Cluster.Spec.ControlPlaneEndpoint
	if !r.StandIns || endpoint.Host != "" || endpoint.Port != 0 {
		return subject.Cluster, nil
	}

	cluster := subject.Cluster.DeepCopy()
	cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "endpoint.invalid", Port: 6443}

	return cluster, []StandIn{{
		Ref:     manifest.Ref{Kind: machineconfig.KindCluster, Namespace: cluster.Namespace, Name: cluster.Name},
		Field:   "spec.controlPlaneEndpoint",
		Message: "is not set: machine configs are checked with a made-up endpoint, and in the cluster they wait until there is one",
	}}
}

// credentials reads the Secrets that a TalosClusterConfig refers to.
func (r *Renderer) credentials(config *bootstrapv1.TalosClusterConfig, bundle *bundle) (machineconfig.Credentials, []StandIn, error) {
	var standIns []StandIn

	values := map[string]machineconfig.Object{}

	for _, name := range machineconfig.SecretNames(config) {
		if secret := find(r.set.Secrets, config.Namespace, name); secret != nil {
			values[name] = machineconfig.SecretObject(secret)

			continue
		}

		if !r.StandIns {
			continue
		}

		values[name] = machineconfig.SecretObject(&corev1.Secret{Data: bundle.standIn(config, name)})
		standIns = append(standIns, StandIn{
			Ref:     manifest.Ref{Kind: machineconfig.KindTalosClusterConfig, Namespace: config.Namespace, Name: config.Name},
			Field:   "spec",
			Message: fmt.Sprintf("refers to Secret %q, which is not among the files: its keys are not checked", name),
		})
	}

	credentials, err := machineconfig.ResolveCredentials(config, values)

	return credentials, standIns, err
}

// standIn is a Secret that has what the config's references to it need.
func (b *bundle) standIn(config *bootstrapv1.TalosClusterConfig, name string) map[string][]byte {
	values := map[string][]byte{}
	named := func(ref *corev1.LocalObjectReference) bool { return ref != nil && ref.Name == name }

	if named(config.Spec.AcceptedCAsSecretRef) {
		values[bootstrapv1.KubernetesCAKey] = b.content.Certs.K8s.Crt
	}

	for i := range config.Spec.Registries {
		registry := &config.Spec.Registries[i]

		if named(registry.AuthSecretRef) {
			key := bootstrapv1.RegistryAuthKey
			if registry.Username != "" {
				key = bootstrapv1.RegistryPasswordKey
			}

			values[key] = []byte("c3RhbmQ6aW4=")
		}

		if named(registry.TLS.CASecretRef) {
			values[bootstrapv1.CACertificateKey] = b.content.Certs.OS.Crt
		}

		if named(registry.TLS.ClientCertificateSecretRef) {
			values[corev1.TLSCertKey], values[corev1.TLSPrivateKeyKey] = b.content.Certs.OS.Crt, b.content.Certs.OS.Key
		}
	}

	return values
}
