// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/siderolabs/talos/pkg/machinery/extensions"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/cri"
	"github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	"github.com/siderolabs/talos/pkg/machinery/resources/hardware"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/siderolabs/talos/pkg/machinery/resources/secrets"
	"github.com/siderolabs/talos/pkg/machinery/resources/time"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
)

// resources are what the node shows now, but for the static pods.
func (b *boot) resources(stage runtime.MachineStage, unmet []runtime.UnmetCondition) []resource.Resource {
	machineStatus := runtime.NewMachineStatus()
	machineStatus.TypedSpec().Stage = stage
	machineStatus.TypedSpec().Status.UnmetConditions = unmet
	machineStatus.TypedSpec().Status.Ready = len(unmet) == 0

	version := runtime.NewVersion()
	version.TypedSpec().Name, version.TypedSpec().Version = "Talos", b.image.version.String()

	all := []resource.Resource{machineStatus, version}
	if b.image.version.Contract().AtLeast(14) {
		bootID := runtime.NewBootID()
		bootID.TypedSpec().BootID = b.id
		all = append(all, bootID)
	}
	all = append(all, b.extensions()...)
	all = append(all, b.hardware()...)
	all = append(all, b.networkResources()...)
	all = append(all, b.storageResources()...)
	// Of a service that does not run there is no resource. Source: Talos, internal/app/machined/pkg/controllers/v1alpha1, ServiceController.
	for _, service := range b.services() {
		if !service.running {
			continue
		}
		r := v1alpha1.NewService(service.id)
		r.TypedSpec().Running, r.TypedSpec().Healthy = true, service.healthy
		all = append(all, r)
	}
	if c := b.config(); c != nil {
		all = append(all, b.configured(c)...)
	}
	return all
}

// confirmBoot drops what a failed boot would go back to. Source: Talos, DropUpgradeFallbackController.
func (n *Node) confirmBoot() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.disk.fallback = -1
}

// hardware is what the machine is, and what its META partition holds.
func (b *boot) hardware() []resource.Resource {
	n := b.node
	system := hardware.NewSystemInformation(hardware.SystemInformationID)
	system.TypedSpec().UUID, system.TypedSpec().Manufacturer = n.uuid, "simulated"
	platform := runtime.NewPlatformMetadataSpec(runtime.NamespaceName, runtime.PlatformMetadataID)
	platform.TypedSpec().Platform, platform.TypedSpec().Hostname = n.platform(), n.Name()
	all := []resource.Resource{system, platform}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(n.disk.meta)) {
		r := runtime.NewMetaKey(runtime.NamespaceName, runtime.MetaKeyTagToID(uint8(key)))
		r.TypedSpec().Value = string(n.disk.meta[key])
		all = append(all, r)
	}
	return all
}

// configured are the resources that a node in maintenance mode does not have.
func (b *boot) configured(c *nodeConfig) []resource.Resource {
	n := b.node
	machineType := config.NewMachineType()
	machineType.SetMachineType(c.Machine().Type())
	clock := time.NewStatus()
	clock.TypedSpec().Synced = !n.Faults().TimeUnsynced

	all := []resource.Resource{machineType, clock, config.NewMachineConfig(c.Provider)}
	if stored, err := parseStored(n.Config()); err == nil {
		all = append(all, config.NewMachineConfigWithID(stored, config.PersistentID))
	}
	if member := n.member(); member != nil && member.running() {
		local := etcd.NewMember(etcd.NamespaceName, etcd.LocalMemberID)
		local.TypedSpec().MemberID = etcd.FormatMemberID(member.id())
		all = append(all, local)
	}
	all = append(all, b.nodeResources(c)...)
	all = append(all, b.configResources(c)...)
	all = append(all, b.kernel(c)...)
	all = append(all, b.secretResources(c)...)

	cache := cri.NewImageCacheConfig()
	cache.TypedSpec().Status = cri.ImageCacheStatusDisabled
	if wanted := c.ImageCacheConfig(); wanted != nil && wanted.LocalEnabled() {
		cache.TypedSpec().Status = cri.ImageCacheStatusReady
	}
	all = append(all, cache)
	if unattended := c.UnattendedInstallConfig(); unattended != nil && b.image.version.Contract().AtLeast(14) {
		install := runtime.NewUnattendedInstallStatus()
		install.TypedSpec().Image, install.TypedSpec().Phase = unattended.InstallerImage(), runtime.UnattendedInstallPhaseInstalled
		all = append(all, install)
	}
	return all
}

// kernel are the parameters and modules that the configuration sets, which take effect at once.
func (b *boot) kernel(c *nodeConfig) []resource.Resource {
	var all []resource.Resource
	sysctls := c.SysctlConfig()
	for _, name := range slices.Sorted(maps.Keys(sysctls)) {
		r := runtime.NewKernelParamStatus(runtime.NamespaceName, "proc.sys."+strings.ReplaceAll(name, "/", "."))
		r.TypedSpec().Current, r.TypedSpec().Default = sysctls[name], "0"
		all = append(all, r)
	}
	if !b.image.version.Contract().AtLeast(14) {
		return all
	}
	for _, module := range c.KernelModuleConfigs() {
		r := runtime.NewKernelModuleStatus(runtime.NamespaceName, module.Name())
		r.TypedSpec().State = runtime.KernelModuleStateLive
		all = append(all, r)
	}
	return all
}

// secretResources are for administrators.
func (b *boot) secretResources(c *nodeConfig) []resource.Resource {
	var all []resource.Resource
	if security := c.Machine().Security(); security != nil {
		root := secrets.NewOSRoot(secrets.OSRootID)
		root.TypedSpec().IssuingCA, root.TypedSpec().AcceptedCAs = security.IssuingCA(), security.AcceptedCAs()
		root.TypedSpec().Token = security.Token()
		all = append(all, root)
	}
	if ca := c.etcdCA(); c.controlPlane() && ca != nil {
		root := secrets.NewEtcdRoot(secrets.EtcdRootID)
		root.TypedSpec().EtcdCA = ca
		all = append(all, root)
	}
	return all
}

// extensions are those of the image's schematic, which itself shows as one.
func (b *boot) extensions() []resource.Resource {
	id := b.image.schematic
	if id == "" {
		return nil
	}
	var all []resource.Resource
	layers := []extensions.Metadata{{Name: "schematic", Version: id}}
	for _, name := range b.node.world.options.Schematics[id] {
		layers = append(layers, extensions.Metadata{Name: shortName(name), Version: b.image.version.String()})
	}
	for i, layer := range layers {
		r := runtime.NewExtensionStatus(runtime.NamespaceName, fmt.Sprint(i))
		r.TypedSpec().Image, r.TypedSpec().Metadata = fmt.Sprintf("%d.sqsh", i), layer
		all = append(all, r)
	}
	if b.image.version.Contract().AtLeast(14) {
		schematic := runtime.NewImageFactorySchematic(runtime.NamespaceName, runtime.ImageFactorySchematicID)
		schematic.TypedSpec().SchematicID = id
		all = append(all, schematic)
	}
	return all
}

var errNoConfig = errors.New("the disk holds no configuration")
