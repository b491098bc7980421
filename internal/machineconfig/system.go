// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"

	bootstrapv1 "github.com/maesh-dev/ichor/api/bootstrap/v1alpha1"
	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
	"github.com/maesh-dev/ichor/internal/storage"
)

// nodeLabelPrefix marks the labels of a Machine that belong on its Node. Others stay off: Cluster API changes its own
// labels at will, and each change would be a drift of the config.
const nodeLabelPrefix = "node.cluster.x-k8s.io/"

// contribution is one document that an object of the system layer merges into the config, or one thing it removes.
type contribution struct {
	source   Source
	document config.Document
	remove   *target
}

// target is a document, or a field of one.
type target struct {
	id      merge.ID
	pointer string
}

// system collects the contributions of the system layer, and what is worth a warning.
type system struct {
	in            *Input
	contributions []contribution
	warnings      []string
}

func (s *system) put(source Source, documents ...config.Document) {
	for _, document := range documents {
		s.contributions = append(s.contributions, contribution{source: source, document: document})
	}
}

func (s *system) remove(source Source, id merge.ID, pointer string) {
	s.contributions = append(s.contributions, contribution{source: source, remove: &target{id, pointer}})
}

func (s *system) warn(source Source, format string, args ...any) {
	s.warnings = append(s.warnings, source.String()+": "+fmt.Sprintf(format, args...))
}

// modernKubernetes says whether the contract has its Kubernetes settings in documents of their own.
func (s *system) modernKubernetes() bool {
	return s.in.Contract.Machinery().MultidocKubernetesConfigSupported()
}

// legacy makes the legacy document; change sets fields in it.
func legacy(change func(machine *v1alpha1.MachineConfig, cluster *v1alpha1.ClusterConfig)) config.Document {
	document := &v1alpha1.Config{MachineConfig: &v1alpha1.MachineConfig{}, ClusterConfig: &v1alpha1.ClusterConfig{}}
	change(document.MachineConfig, document.ClusterConfig)

	return document
}

// collect gathers the whole system layer.
func (s *system) collect(settings talosSettings) error {
	if config := s.in.ClusterConfig; config != nil {
		if err := s.registries(config); err != nil {
			return err
		}

		s.talos(config)

		if err := s.network(config); err != nil {
			return err
		}
	}

	if err := s.install(settings); err != nil {
		return err
	}

	if err := s.hostname(); err != nil {
		return err
	}

	s.nodeLabels()
	s.taints()

	return s.storage()
}

func (s *system) clusterConfigSource(config *bootstrapv1.TalosClusterConfig, path string) Source {
	return Source{Layer: LayerSystem, Kind: KindTalosClusterConfig, Name: config.Name, Path: path}
}

// talos is what TalosClusterConfig.spec.talos says beside versions.
func (s *system) talos(config *bootstrapv1.TalosClusterConfig) {
	if config.Spec.Talos.CloudProvider != bootstrapv1.CloudProviderExternal {
		return
	}

	s.put(s.clusterConfigSource(config, "spec.talos.cloudProvider"), legacy(func(_ *v1alpha1.MachineConfig, cluster *v1alpha1.ClusterConfig) {
		cluster.ExternalCloudProviderConfig = &v1alpha1.ExternalCloudProviderConfig{ExternalEnabled: new(true)}
	}))
}

// hostname makes the one document that is valid for every contract: nodes know it since Talos 1.12.
func (s *system) hostname() error {
	name := ""
	source := Source{Layer: LayerSystem, Kind: KindTalosConfig, Name: s.in.TalosConfig.Name, Path: "spec.hostname"}

	switch s.in.TalosConfig.Spec.Hostname.Source {
	case "", bootstrapv1.HostnameSourceAutomatic:
		return nil
	case bootstrapv1.HostnameSourceMachineName:
		name = s.in.Machine.Name
	case bootstrapv1.HostnameSourceInfrastructureMachineName:
		name = s.in.Machine.InfrastructureName
	}

	if s.in.Machine.Kind == KindMachinePool {
		return &Error{
			Reason: ReasonRenderFailed, Source: source, Field: "source",
			Err: fmt.Errorf("all machines of a MachinePool share one config, so they cannot be named %s: use %s",
				s.in.TalosConfig.Spec.Hostname.Source, bootstrapv1.HostnameSourceAutomatic),
		}
	}

	if name == "" {
		return &Error{
			Reason: ReasonRenderFailed, Source: source, Field: "source",
			Err: fmt.Errorf("the machine has no infrastructure object to be named after: use %s", bootstrapv1.HostnameSourceMachineName),
		}
	}

	document := network.NewHostnameConfigV1Alpha1()
	document.ConfigAuto = new(nethelpers.AutoHostnameKindOff)
	document.ConfigHostname = name
	s.put(source, document)

	return nil
}

// nodeLabels are the Machine's labels that belong on the Node.
func (s *system) nodeLabels() {
	labels := map[string]string{}

	for key, value := range s.in.Machine.Labels {
		if strings.HasPrefix(key, nodeLabelPrefix) {
			labels[key] = value
		}
	}

	if len(labels) > 0 {
		s.put(Source{Layer: LayerSystem, Kind: s.in.Machine.Kind, Name: s.in.Machine.Name, Path: "metadata.labels"}, s.nodeDocument(labels, nil))
	}
}

// nodeDocument carries labels and annotations of the Node, where the contract has them.
func (s *system) nodeDocument(labels, annotations map[string]string) config.Document {
	if s.modernKubernetes() {
		document := k8s.NewKubeNodeConfigV1Alpha1()
		document.LabelsConfig, document.AnnotationsConfig = labels, annotations

		return document
	}

	return legacy(func(machine *v1alpha1.MachineConfig, _ *v1alpha1.ClusterConfig) {
		machine.MachineNodeLabels, machine.MachineNodeAnnotations = labels, annotations
	})
}

// storage is what the governing TalosStorage prepares on the node.
func (s *system) storage() error {
	governing, err := storage.Select(s.in.Cluster, s.in.Storages, s.in.Machine.Labels)
	if err != nil {
		return storageFault(err)
	}

	if governing == nil {
		return nil
	}

	source := Source{Layer: LayerSystem, Kind: KindTalosStorage, Name: governing.Name}

	preparation, err := storage.Prepare(governing, s.in.Contract)
	if err != nil {
		return storageFault(err)
	}

	s.put(source, preparation.Documents...)

	if len(preparation.NodeLabels)+len(preparation.NodeAnnotations) > 0 {
		s.put(source, s.nodeDocument(preparation.NodeLabels, preparation.NodeAnnotations))
	}

	for _, warning := range preparation.Warnings {
		s.warn(source, "%s", warning)
	}

	return nil
}

// storageFault makes an Error of each fault in a TalosStorage.
func storageFault(err error) error {
	var faults []error

	for _, each := range storage.Errors(err) {
		faults = append(faults, &Error{
			Reason: ReasonRenderFailed,
			Source: Source{Layer: LayerSystem, Kind: KindTalosStorage, Name: each.Storage},
			Field:  each.Field,
			Err:    each.Err,
		})
	}

	return errors.Join(faults...)
}
