// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"errors"
	"fmt"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
	"github.com/siderolabs/talos/pkg/machinery/extensions"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/siderolabs/talos/pkg/machinery/resources/time"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// resourceKinds are the kinds that a node has, with the minor of Talos 1 that they came with.
var resourceKinds = []struct {
	kind  meta.ResourceDefinitionProvider
	minor int
}{
	{kind: runtime.NewMachineStatus()},
	{kind: runtime.NewVersion()},
	{kind: runtime.NewBootID(), minor: 14},
	{kind: runtime.NewExtensionStatus("", "")},
	{kind: runtime.NewImageFactorySchematic("", ""), minor: 14},
	{kind: config.NewMachineConfig(nil)},
	{kind: config.NewMachineType()},
	{kind: etcd.NewMember("", "")},
	{kind: k8s.NewNodename("", "")},
	{kind: network.NewHostnameStatus("", "")},
	{kind: time.NewStatus()},
	{kind: v1alpha1.NewService("")},
}

// prepareState makes an empty state that knows its kinds.
func (b *boot) prepareState() error {
	b.state = state.WrapCore(namespaced.NewState(inmem.Build))
	for _, row := range resourceKinds {
		if !b.image.version.Contract().AtLeast(row.minor) {
			continue
		}
		definition, err := meta.NewResourceDefinition(row.kind.ResourceDefinition())
		if err != nil {
			return fmt.Errorf("resource kinds: %w", err)
		}
		if err := b.state.Create(b.ctx, definition); err != nil {
			return fmt.Errorf("resource kinds: %w", err)
		}
	}
	return nil
}

// accessRule is who may touch which resource: readers what is not sensitive, administrators what is, and nobody writes.
func (b *boot) accessRule(ctx context.Context, access state.Access) error {
	roles := rolesOf(ctx)
	if !access.Verb.Readonly() {
		return status.Error(codes.PermissionDenied, "no access is permitted: the resources of a node are not for writing")
	}
	if access.ResourceType == meta.ResourceDefinitionType || roles.Includes(role.Admin) {
		return nil
	}
	for _, row := range resourceKinds {
		spec := row.kind.ResourceDefinition()
		if spec.Type == access.ResourceType && spec.Sensitivity == meta.Sensitive {
			return status.Error(codes.PermissionDenied, "no access is permitted: the resource is sensitive")
		}
	}
	return nil
}

// publish brings the state in line with the node.
func (b *boot) publish() {
	b.publishing.Lock()
	defer b.publishing.Unlock()
	if b.ctx.Err() != nil {
		return
	}
	wanted := map[string]resource.Resource{}
	for _, r := range b.resources() {
		wanted[identity(r)] = r
	}
	for key, old := range b.published {
		if wanted[key] == nil {
			// Only an error about a finalizer or the context is possible here, and nobody sets one.
			_ = b.state.Destroy(b.ctx, old.Metadata())
			delete(b.published, key)
		}
	}
	for key, r := range wanted {
		if err := b.put(b.published[key], r); err == nil {
			b.published[key] = r
		}
	}
}

func identity(r resource.Resource) string {
	return r.Metadata().Namespace() + "/" + r.Metadata().Type() + "/" + r.Metadata().ID()
}

func (b *boot) put(old, wanted resource.Resource) error {
	if old == nil {
		return b.state.Create(b.ctx, wanted)
	}
	current, err := b.state.Get(b.ctx, old.Metadata())
	if err != nil {
		return err
	}
	wanted.Metadata().SetVersion(current.Metadata().Version())
	wanted.Metadata().SetCreated(current.Metadata().Created())
	wanted.Metadata().SetUpdated(current.Metadata().Updated())
	if resource.Equal(current, wanted) {
		return nil
	}
	return b.state.Update(b.ctx, wanted)
}

// resources are what the node shows now.
func (b *boot) resources() []resource.Resource {
	b.mu.Lock()
	stage := b.stage
	b.mu.Unlock()
	n, c := b.node, b.config()

	machineStatus := runtime.NewMachineStatus()
	machineStatus.TypedSpec().Stage = stage
	machineStatus.TypedSpec().Status.UnmetConditions = b.unmet()
	machineStatus.TypedSpec().Status.Ready = len(machineStatus.TypedSpec().Status.UnmetConditions) == 0
	if stage == runtime.MachineStageRunning && machineStatus.TypedSpec().Status.Ready {
		n.confirmBoot()
	}

	version := runtime.NewVersion()
	version.TypedSpec().Name, version.TypedSpec().Version = "Talos", b.image.version.String()

	all := []resource.Resource{machineStatus, version}
	if b.image.version.Contract().AtLeast(14) {
		bootID := runtime.NewBootID()
		bootID.TypedSpec().BootID = b.id
		all = append(all, bootID)
	}
	all = append(all, b.extensions()...)
	if c != nil {
		all = append(all, b.configured(c)...)
	}
	return all
}

// confirmBoot drops what a failed boot would go back to.
func (n *Node) confirmBoot() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.disk.fallback = -1
}

// configured are the resources that a node in maintenance mode does not have.
func (b *boot) configured(c *nodeConfig) []resource.Resource {
	n := b.node
	nodename := k8s.NewNodename(k8s.NamespaceName, k8s.NodenameID)
	nodename.TypedSpec().Nodename = c.nodename(n)
	hostname := network.NewHostnameStatus(network.NamespaceName, network.HostnameID)
	hostname.TypedSpec().Hostname = c.hostname(n)
	machineType := config.NewMachineType()
	machineType.SetMachineType(c.Machine().Type())
	clock := time.NewStatus()
	clock.TypedSpec().Synced = !n.Faults().TimeUnsynced

	all := []resource.Resource{nodename, hostname, machineType, clock, config.NewMachineConfig(c.Provider)}
	if stored, err := parseStored(n.Config()); err == nil {
		all = append(all, config.NewMachineConfigWithID(stored, config.PersistentID))
	}
	if member := n.member(); member != nil && member.running() {
		local := etcd.NewMember(etcd.NamespaceName, etcd.LocalMemberID)
		local.TypedSpec().MemberID = etcd.FormatMemberID(member.id())
		all = append(all, local)
	}
	for _, service := range b.services() {
		r := v1alpha1.NewService(service.id)
		r.TypedSpec().Running, r.TypedSpec().Healthy = service.running, service.healthy
		r.TypedSpec().Unknown = !service.running
		all = append(all, r)
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

// service is one of the node's services.
type service struct {
	id      string
	state   string
	running bool
	healthy bool
}

// services are the ones that a configured node runs.
func (b *boot) services() []service {
	ids := []string{"apid", "auditd", "containerd", "cri", "kubelet", "machined", "syslogd", "udevd"}
	c := b.config()
	if c != nil && c.controlPlane() {
		ids = append(ids, "etcd", "trustd")
	}
	var all []service
	for _, id := range ids {
		s := service{id: id, state: "Running", running: true, healthy: true}
		if member := b.node.member(); id == "etcd" && (member == nil || !member.running()) {
			s = service{id: id, state: b.etcdState()}
		}
		all = append(all, s)
	}
	return all
}

func (b *boot) etcdState() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left {
		return "Finished"
	}
	return "Preparing"
}

var errNoConfig = errors.New("the disk holds no configuration")
