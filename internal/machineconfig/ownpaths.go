// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"fmt"
	"path"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/container"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// ownPaths are what Talos keeps for itself: its state, the certificates and keys of the machine and the cluster, etcd's data, and what the
// kubelet starts with.
var ownPaths = []string{
	constants.SystemPath, constants.EtcdDataPath, constants.KubeletPKIDir, constants.DefaultCertificatesDir, constants.ManifestsDirectory,
	constants.KubeletKubeconfig, constants.KubeletBootstrapKubeconfig,
}

// ownPath finds the one of Talos' own paths that a path is, or is below.
func ownPath(name string) (string, bool) {
	for _, owned := range ownPaths {
		if isWithin(path.Clean(name), owned) {
			return owned, true
		}
	}

	return "", false
}

// overOwnPath finds the one that a path is, is below, or is above: a mount there shows it, or hides it.
func overOwnPath(name string) (string, bool) {
	if owned, ok := ownPath(name); ok {
		return owned, true
	}

	above := strings.TrimSuffix(path.Clean(name), "/")

	for _, owned := range ownPaths {
		if strings.HasPrefix(owned, above+"/") {
			return owned, true
		}
	}

	return "", false
}

// ownMounts finds mounts of the machine's own state and keys into programs, and over those that the programs have.
func ownMounts(documents []config.Document) []finding {
	var findings []finding

	look := func(document merge.ID, pointer, name, words string, find func(string) (string, bool)) {
		if owned, ok := find(name); name != "" && ok {
			findings = append(findings, finding{
				document: document, field: pointer, err: fmt.Errorf("%q %s %s, which is Talos' own: mount a directory that has nothing of it, such as one below /var/mnt", name, words, owned),
			})
		}
	}

	legacy := merge.ID{Kind: merge.LegacyKind}
	machine, cluster := legacyOf(documents)

	if kubelet := machine.MachineKubelet; kubelet != nil {
		for i, mount := range kubelet.KubeletExtraMounts {
			at := fmt.Sprintf("/machine/kubelet/extraMounts/%d", i)
			look(legacy, at+"/source", mount.Source, "gives the kubelet", overOwnPath)
			look(legacy, at+"/destination", mount.Destination, "lies over", overOwnPath)
		}
	}

	for _, program := range podVolumes(cluster) {
		for i, volume := range program.volumes {
			at := fmt.Sprintf("/cluster/%s/extraVolumes/%d", program.field, i)
			look(legacy, at+"/hostPath", volume.VolumeHostPath, "gives the program", overOwnPath)
			look(legacy, at+"/mountPath", volume.VolumeMountPath, "lies over", overSystem)
		}
	}

	for _, document := range documents {
		typed, ok := document.(*container.ContainerConfigV1Alpha1)
		if !ok {
			continue
		}

		for i, mount := range typed.MountsConfig {
			if mount.HostPathMount != nil {
				look(merge.IDOf(document), fmt.Sprintf("/mounts/%d/hostPath/source", i), mount.HostPathMount.MountSource, "gives the container", ownPath)
			}
		}
	}

	return findings
}

// overSystem is overOwnPath for what the pods of the control plane have of it at the same path.
func overSystem(name string) (string, bool) {
	clean := path.Clean(name)

	return constants.SystemPath, clean == "/" || isWithin(clean, constants.SystemPath)
}

// programVolumes are what the legacy document mounts into a program of the control plane.
type programVolumes struct {
	field   string
	volumes []v1alpha1.VolumeMountConfig
}

func podVolumes(cluster *v1alpha1.ClusterConfig) []programVolumes {
	var all []programVolumes

	if cluster.APIServerConfig != nil {
		all = append(all, programVolumes{"apiServer", cluster.APIServerConfig.ExtraVolumesConfig})
	}

	if cluster.ControllerManagerConfig != nil {
		all = append(all, programVolumes{"controllerManager", cluster.ControllerManagerConfig.ExtraVolumesConfig})
	}

	if cluster.SchedulerConfig != nil {
		all = append(all, programVolumes{"scheduler", cluster.SchedulerConfig.ExtraVolumesConfig})
	}

	return all
}
