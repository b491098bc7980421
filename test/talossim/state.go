// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"context"
	"fmt"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/cri"
	"github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	"github.com/siderolabs/talos/pkg/machinery/resources/hardware"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/siderolabs/talos/pkg/machinery/resources/secrets"
	"github.com/siderolabs/talos/pkg/machinery/resources/time"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// resourceKinds are the kinds that a node has, with the minor of Talos 1 that they came with. Source: machinery 1.12.0,
// 1.13.0 and 1.14.1, pkg/machinery/resources.
var resourceKinds = []struct {
	kind  meta.ResourceDefinitionProvider
	minor int
}{
	{kind: runtime.NewMachineStatus()},
	{kind: runtime.NewVersion()},
	{kind: runtime.NewBootID(), minor: 14},
	{kind: runtime.NewExtensionStatus("", "")},
	{kind: runtime.NewImageFactorySchematic("", ""), minor: 14},
	{kind: runtime.NewKernelParamStatus("", "")},
	{kind: runtime.NewKernelModuleStatus("", ""), minor: 14},
	{kind: runtime.NewMetaKey("", "")},
	{kind: runtime.NewPlatformMetadataSpec("", "")},
	{kind: runtime.NewUnattendedInstallStatus(), minor: 14},
	{kind: hardware.NewSystemInformation("")},
	{kind: config.NewMachineConfig(nil)},
	{kind: config.NewMachineType()},
	{kind: etcd.NewMember("", "")},
	{kind: k8s.NewNodename("", "")},
	{kind: k8s.NewNodeIP("", "")},
	{kind: k8s.NewNodeStatus("", "")},
	{kind: k8s.NewKubeletSpec("", "")},
	{kind: k8s.NewKubeletStatus("", ""), minor: 14},
	{kind: k8s.NewAPIServerConfig("")},
	{kind: k8s.NewControllerManagerConfig("")},
	{kind: k8s.NewSchedulerConfig("")},
	{kind: k8s.NewStaticPod("", "")},
	{kind: k8s.NewStaticPodStatus("", "")},
	{kind: network.NewHostnameStatus("", "")},
	{kind: network.NewStatus("", "")},
	{kind: network.NewNodeAddress("", "")},
	{kind: network.NewAddressStatus("", "")},
	{kind: network.NewLinkStatus("", "")},
	{kind: block.NewDisk("", "")},
	{kind: block.NewSystemDisk("", "")},
	{kind: block.NewDiscoveredVolume("", "")},
	{kind: block.NewVolumeStatus("", "")},
	{kind: block.NewMountStatus("", "")},
	{kind: cri.NewImageCacheConfig()},
	{kind: secrets.NewOSRoot("")},
	{kind: secrets.NewEtcdRoot("")},
	{kind: time.NewStatus()},
	{kind: v1alpha1.NewService("")},
}

// prepareState makes an empty state.
func (b *boot) prepareState() { b.state = state.WrapCore(namespaced.NewState(inmem.Build)) }

// show fills the state when it is asked for the first time. Most nodes of a large world are never asked.
func (b *boot) show() error {
	b.showing.Lock()
	defer b.showing.Unlock()
	if b.shown.Load() {
		return nil
	}
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
	b.shown.Store(true)
	b.publish()
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

// publish brings what the node shows, its state and its events, in line with what it is.
func (b *boot) publish() {
	if b.seeBooted() {
		defer b.end(b.actor, bootSequence, nil) // when the running node is shown
	}
	b.publishing.Lock()
	defer b.publishing.Unlock()
	if b.ctx.Err() != nil {
		return
	}
	b.mu.Lock()
	stage := b.stage
	b.mu.Unlock()
	unmet := b.unmet()
	if stage == runtime.MachineStageRunning && len(unmet) == 0 && !b.confirmed {
		b.confirmed = true
		b.node.confirmBoot()
	}
	b.reportStatus(stage, unmet)
	if !b.shown.Load() {
		return
	}
	wanted := map[string]resource.Resource{}
	b.putAll(wanted, b.resources(stage, unmet))
	if c := b.config(); c != nil {
		// The pods carry the versions that their configurations have been given by now.
		b.putAll(wanted, b.podResources(c))
	}
	for key, old := range b.published {
		if wanted[key] == nil {
			// Only an error about a finalizer or the context is possible here, and nobody sets one.
			_ = b.state.Destroy(b.ctx, old.Metadata())
			delete(b.published, key)
		}
	}
}

func (b *boot) putAll(wanted map[string]resource.Resource, all []resource.Resource) {
	for _, r := range all {
		key := identity(r)
		wanted[key] = r
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
