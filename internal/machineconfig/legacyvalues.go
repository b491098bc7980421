// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// legacyLinks looks at the interfaces of the legacy document as at the documents that came after it.
func (s *shapes) legacyLinks(document *v1alpha1.Config) {
	machine, _ := legacyOf([]config.Document{document})
	if machine.MachineNetwork == nil {
		return
	}

	for i, device := range machine.MachineNetwork.NetworkInterfaces {
		at := fmt.Sprintf("/machine/network/interfaces/%d", i)

		s.reference(at+"/interface", device.DeviceInterface)
		s.legacyMTU(at+"/mtu", device.DeviceMTU)
		s.legacyRoutes(at, device.DeviceRoutes)

		for j, vlan := range device.DeviceVlans {
			at := fmt.Sprintf("%s/vlans/%d", at, j)
			s.legacyMTU(at+"/mtu", int(vlan.VlanMTU))
			s.legacyRoutes(at, vlan.VlanRoutes)

			if vlan.VlanID < 1 || vlan.VlanID > 4094 {
				s.add(at+"/vlanId", fmt.Errorf("is %d, and a tag is a number from 1 to 4094", vlan.VlanID))
			}
		}
	}
}

func (s *shapes) legacyMTU(pointer string, mtu int) {
	if mtu < 0 || mtu > largestMTU {
		s.add(pointer, fmt.Errorf("is %d, and the kernel takes %d to %d: 1500 is usual, 9000 with jumbo frames", mtu, smallestMTU, largestMTU))

		return
	}

	s.mtu(pointer, uint32(mtu)) //nolint:gosec // bounded above
}

// legacyRoutes looks at what can be read. Talos refuses the rest.
func (s *shapes) legacyRoutes(at string, routes []*v1alpha1.Route) {
	for i, route := range routes {
		destination, _ := netip.ParsePrefix(route.RouteNetwork)
		gateway, _ := netip.ParseAddr(route.RouteGateway)
		source, _ := netip.ParseAddr(route.RouteSource)

		s.route(fmt.Sprintf("%s/routes/%d", at, i), destination, gateway, source)
	}
}

// bindOptions are those that a mount of a directory takes.
var bindOptions = []string{
	"bind", "rbind", "ro", "rw", "rro", "private", "rprivate", "shared", "rshared", "slave", "rslave", "unbindable", "runbindable", "suid", "nosuid",
	"dev", "nodev", "exec", "noexec", "atime", "noatime", "diratime", "nodiratime", "relatime", "norelatime", "strictatime", "nostrictatime",
	"sync", "async", "dirsync", "idmap", "ridmap", "nosymfollow", "symfollow", "defaults",
}

// legacyValues looks at what only the legacy document has.
func (s *shapes) legacyValues(machine *v1alpha1.MachineConfig, cluster *v1alpha1.ClusterConfig) {
	if machine.MachineKubelet != nil {
		for i, mount := range machine.MachineKubelet.KubeletExtraMounts {
			s.extraMount(fmt.Sprintf("/machine/kubelet/extraMounts/%d", i), mount)
		}
	}

	if install := machine.MachineInstall; install != nil && install.InstallDisk != "" && !isDevice(install.InstallDisk) {
		s.add("/machine/install/disk", errors.New("is no device, and Talos would not be installed: write its whole path, such as /dev/sda"))
	}

	s.programVolumes(cluster)

	for i, disk := range machine.MachineDisks {
		s.disk(fmt.Sprintf("/machine/disks/%d", i), disk)
	}

	for i, profile := range machine.MachineSeccompProfiles {
		if name := profile.MachineSeccompProfileName; name == "" || path.Base(name) != name || strings.Trim(name, ".") == "" {
			s.add(fmt.Sprintf("/machine/seccompProfiles/%d/name", i), errors.New("is no name of a file, which the profile is written to: such as audit.json"))
		}
	}

	if cluster.ProxyConfig != nil && !slices.Contains([]string{"", "iptables", "ipvs", "nftables"}, cluster.ProxyConfig.ModeConfig) {
		s.add("/cluster/proxy/mode", fmt.Errorf("is %q, and kube-proxy would not start: use nftables, iptables or ipvs", cluster.ProxyConfig.ModeConfig))
	}

	for i, manifest := range cluster.ExtraManifests {
		if manifest == "" || strings.ContainsAny(manifest, " \t\r\n") {
			s.add(fmt.Sprintf("/cluster/extraManifests/%d", i), errors.New("is no URL, and the manifest would not be fetched: write it as https://example.com/manifest.yaml"))
		}
	}
}

func (s *shapes) extraMount(at string, mount v1alpha1.ExtraMount) {
	if !path.IsAbs(mount.Destination) {
		s.add(at+"/destination", errors.New("is no whole path, and the kubelet would not start: write it from / on"))
	}

	if mount.Type != "bind" && !slices.Contains(mount.Options, "bind") && !slices.Contains(mount.Options, "rbind") {
		return
	}

	switch clean := path.Clean(mount.Source); {
	case !path.IsAbs(mount.Source):
		s.add(at+"/source", errors.New("is no whole path, and the kubelet would not start: write it from / on"))
	case s.onTalos && isReadOnly(clean):
		s.add(at+"/source", fmt.Errorf("%q is neither there nor can Talos make it, since its file system is read-only, and the kubelet would not start: "+
			"use a directory under /var, such as /var/mnt/data", mount.Source))
	}

	for i, option := range mount.Options {
		if !slices.Contains(bindOptions, option) {
			s.add(fmt.Sprintf("%s/options/%d", at, i), fmt.Errorf("%q is no option of a bind mount, and the kubelet would not start: usual are bind, rshared, rw and ro", option))
		}
	}
}

func (s *shapes) disk(at string, disk *v1alpha1.MachineDisk) {
	if disk.DeviceName != "" && !isDevice(disk.DeviceName) {
		s.add(at+"/device", errors.New("is no device: write its whole path, such as /dev/sdb"))
	}

	for i, partition := range disk.DiskPartitions {
		pointer := fmt.Sprintf("%s/partitions/%d/mountpoint", at, i)

		switch owned, own := overOwnPath(partition.DiskMountPoint); {
		case partition.DiskMountPoint == "":
		case own:
			s.add(pointer, fmt.Errorf("%q lies over %s, which is Talos' own: use a directory of its own, such as /var/mnt/data", partition.DiskMountPoint, owned))
		case !strings.HasPrefix(path.Clean(partition.DiskMountPoint), "/var/"):
			s.add(pointer, fmt.Errorf("%q is not under /var, and Talos' file system is read-only elsewhere: such as /var/mnt/data", partition.DiskMountPoint))
		}
	}
}

// variables finds names that no environment variable can have.
func (s *shapes) variables(document config.Document) {
	look := func(pointer string, env map[string]string, right func(string) bool) {
		for _, name := range slices.Sorted(maps.Keys(env)) {
			if !right(name) {
				s.add(pointer+"/"+merge.EscapePointer(name), errors.New("is no name of an environment variable: letters, digits and '_', and no digit first"))
			}
		}
	}

	ofPod := func(name string) bool { return len(validation.IsEnvVarName(name)) == 0 }

	switch typed := document.(type) {
	case *k8s.KubeAPIServerConfigV1Alpha1:
		look("/env", typed.PodEnv, ofPod)
	case *k8s.KubeControllerManagerConfigV1Alpha1:
		look("/env", typed.PodEnv, ofPod)
	case *k8s.KubeSchedulerConfigV1Alpha1:
		look("/env", typed.PodEnv, ofPod)
	case *v1alpha1.Config:
		machine, cluster := legacyOf([]config.Document{typed})
		look("/machine/env", machine.MachineEnv, runtime.POSIX1EnvKeyRegex.MatchString)

		if cluster.APIServerConfig != nil {
			look("/cluster/apiServer/env", cluster.APIServerConfig.EnvConfig, ofPod)
		}

		if cluster.ControllerManagerConfig != nil {
			look("/cluster/controllerManager/env", cluster.ControllerManagerConfig.EnvConfig, ofPod)
		}

		if cluster.SchedulerConfig != nil {
			look("/cluster/scheduler/env", cluster.SchedulerConfig.EnvConfig, ofPod)
		}
	}
}

// talosRoot are the directories at the root of Talos' file system that have something in them, or can be written to.
var talosRoot = []string{"bin", "boot", "dev", "etc", "lib", "lib64", "opt", "proc", "root", "run", "sbin", "sys", "system", "tmp", "usr", "var"}

// isReadOnly tells a path at which there is nothing, and at which nothing can be made.
func isReadOnly(name string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(name, "/"), "/")

	return first != "" && !strings.HasPrefix(first, ".") && !slices.Contains(talosRoot, first)
}

func (s *shapes) wholePath(pointer, name string) {
	if name != "" && !path.IsAbs(name) {
		s.add(pointer, errors.New("is no whole path: write it from / on"))
	}
}

// programVolumes looks at what is mounted into the programs of the control plane.
func (s *shapes) programVolumes(cluster *v1alpha1.ClusterConfig) {
	for _, program := range podVolumes(cluster) {
		for i, volume := range program.volumes {
			at := fmt.Sprintf("/cluster/%s/extraVolumes/%d", program.field, i)
			s.wholePath(at+"/hostPath", volume.VolumeHostPath)
			s.wholePath(at+"/mountPath", volume.VolumeMountPath)
		}
	}
}
