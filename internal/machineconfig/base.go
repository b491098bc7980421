// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/siderolabs/crypto/x509"
	machineryconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/version"
)

// base is the config that machinery generates from the cluster's facts alone.
func base(in *Input) (machineryconfig.Provider, error) {
	kubernetes, err := version.ParseKubernetes(in.Machine.KubernetesVersion)
	if err != nil {
		return nil, machineFault(in, "spec.version", err)
	}

	endpoint := in.Cluster.Spec.ControlPlaneEndpoint
	if endpoint.Host == "" || endpoint.Port == 0 {
		return nil, clusterFault(in, "spec.controlPlaneEndpoint", errors.New("host and port must be set before a machine config can be rendered"))
	}

	network := in.Cluster.Spec.ClusterNetwork
	options := []generate.Option{
		generate.WithVersionContract(in.Contract.Machinery()),
		generate.WithSecretsBundle(in.Bundle),
		generate.WithSkipUnattendedInstallConfig(true),
	}

	if network.ServiceDomain != "" {
		options = append(options, generate.WithDNSDomain(network.ServiceDomain))
	}

	generator, err := generate.NewInput(
		in.Cluster.Name,
		"https://"+net.JoinHostPort(strings.Trim(endpoint.Host, "[]"), strconv.Itoa(int(endpoint.Port))),
		kubernetes.Number(),
		options...,
	)
	if err != nil {
		return nil, clusterFault(in, "", fmt.Errorf("generate the base config: %w", err))
	}

	if err = setSubnets(in, "pods", network.Pods.CIDRBlocks, &generator.PodNet); err != nil {
		return nil, err
	}

	if err = setSubnets(in, "services", network.Services.CIDRBlocks, &generator.ServiceNet); err != nil {
		return nil, err
	}

	machineType := machine.TypeWorker
	if in.Machine.ControlPlane {
		machineType = machine.TypeControlPlane
	}

	provider, err := generator.Config(machineType)
	if err != nil {
		return nil, clusterFault(in, "", fmt.Errorf("generate the base config: %w", err))
	}

	if err = acceptCAs(in, provider); err != nil {
		return nil, err
	}

	return provider, repairEncryption(in, provider)
}

// acceptCAs adds trust roots. They belong to the base, because no layer above it may touch them.
func acceptCAs(in *Input, provider machineryconfig.Provider) error {
	accepted := in.Credentials.acceptedCAs
	config := provider.RawV1Alpha1()

	for _, certificate := range accepted.talos {
		config.MachineConfig.MachineAcceptedCAs = append(config.MachineConfig.MachineAcceptedCAs, &x509.PEMEncodedCertificate{Crt: []byte(certificate)})
	}

	if document, ok := documentOf[*k8s.KubeAPIServerCAConfigV1Alpha1](provider.Documents()); ok {
		document.APIAcceptedCAs = append(document.APIAcceptedCAs, accepted.kubernetes...)
	} else {
		for _, certificate := range accepted.kubernetes {
			config.ClusterConfig.ClusterAcceptedCAs = append(config.ClusterConfig.ClusterAcceptedCAs, &x509.PEMEncodedCertificate{Crt: []byte(certificate)})
		}
	}

	if len(accepted.aggregator) == 0 || !in.Machine.ControlPlane {
		return nil
	}

	document, ok := documentOf[*k8s.KubeAggregatorCAConfigV1Alpha1](provider.Documents())
	if !ok {
		return &Error{
			Reason: ReasonInvalidReference, Source: accepted.source, Field: bootstrapv1.AggregatorCAKey,
			Err: fmt.Errorf("config contract %s has no place for it: remove the key from the Secret", in.Contract),
		}
	}

	document.AggregatorAcceptedCAs = append(document.AggregatorAcceptedCAs, accepted.aggregator...)

	return nil
}

// maxSubnets is one of each address family.
const maxSubnets = 2

// setSubnets checks the blocks before machinery sees them: it panics on one that does not parse, and leaves the rest to the
// API server and the controller manager, which would not start.
func setSubnets(in *Input, name string, blocks []string, target *[]string) error {
	if len(blocks) == 0 {
		return nil
	}

	path := fmt.Sprintf("spec.clusterNetwork.%s.cidrBlocks", name)
	if len(blocks) > maxSubnets {
		return clusterFault(in, path, fmt.Errorf("has %d blocks: at most one of each address family is allowed", len(blocks)))
	}

	var families [maxSubnets]bool

	for i, block := range blocks {
		at := fmt.Sprintf("%s[%d]", path, i)

		prefix, err := netip.ParsePrefix(block)
		if err != nil {
			return clusterFault(in, at, fmt.Errorf("%q is not a CIDR block, for example 10.244.0.0/16", block))
		}

		if prefix != prefix.Masked() {
			return clusterFault(in, at, fmt.Errorf("%s has bits set behind its length: write %s", block, prefix.Masked()))
		}

		if prefix.Bits() == 0 || prefix.IsSingleIP() {
			return clusterFault(in, at, fmt.Errorf("%s cannot be a cluster's network: its length must be between 1 and %d", block, prefix.Addr().BitLen()-1))
		}

		if families[i] = prefix.Addr().Is6(); i > 0 && families[i] == families[i-1] {
			return clusterFault(in, at, fmt.Errorf("%s and %s are of one address family: at most one of each is allowed", blocks[i-1], block))
		}
	}

	*target = blocks

	return nil
}

func clusterFault(in *Input, path string, err error) *Error {
	return &Error{Reason: ReasonRenderFailed, Source: Source{Layer: LayerBase, Kind: KindCluster, Name: in.Cluster.Name, Path: path}, Err: err}
}

func machineFault(in *Input, path string, err error) *Error {
	return &Error{Reason: ReasonRenderFailed, Source: Source{Layer: LayerBase, Kind: in.Machine.Kind, Name: in.Machine.Name, Path: path}, Err: err}
}

// repairEncryption puts the keys that etcd's content is encrypted with where the API server looks for them. Clusters born
// before Talos 1.3 have an AES-CBC key. Of two keys, machinery renders one for contracts up to 1.13; for 1.14 it puts the
// AES-CBC key under the provider of the other cipher. What is encrypted in etcd could then not be read any more.
func repairEncryption(in *Input, provider machineryconfig.Provider) error {
	if !in.Machine.ControlPlane {
		return nil
	}

	key := in.Bundle.Secrets.AESCBCEncryptionSecret

	document, ok := documentOf[*k8s.KubeEtcdEncryptionConfigV1Alpha1](provider.Documents())
	if !ok {
		cluster := provider.RawV1Alpha1().ClusterConfig
		cluster.ClusterAESCBCEncryptionSecret = key
		cluster.ClusterSecretboxEncryptionSecret = in.Bundle.Secrets.SecretboxEncryptionSecret

		return nil
	}

	if key == "" {
		return nil
	}

	entry := func(cipher, name, secret string) map[string]any {
		return map[string]any{cipher: map[string]any{"keys": []any{map[string]any{"name": name, "secret": secret}}}}
	}

	// The names and the order are those of the legacy layout: the API server finds a key by them.
	var providers []any
	if secretbox := in.Bundle.Secrets.SecretboxEncryptionSecret; secretbox != "" {
		providers = append(providers, entry("secretbox", "key2", secretbox))
	}

	providers = append(providers, entry("aescbc", "key1", key))

	resources, ok := document.Config.Object["resources"].([]any)
	if !ok || len(resources) != 1 {
		return clusterFault(in, "", errors.New("the generated KubeEtcdEncryptionConfig does not have the one list of resources that Ichor knows"))
	}

	resource, ok := resources[0].(map[string]any)
	if !ok {
		return clusterFault(in, "", errors.New("the generated KubeEtcdEncryptionConfig does not have the form that Ichor knows"))
	}

	resource["providers"] = providers

	return nil
}
