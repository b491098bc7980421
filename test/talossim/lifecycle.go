// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// lifecycleService answers the calls of LifecycleService, which came with Talos 1.13.
type lifecycleService struct {
	machine.UnimplementedLifecycleServiceServer

	boot *boot
}

// Upgrade installs an image that was pulled into the boot entry that is not the default. The node goes on as it was: no
// drain, no reboot, no look at etcd. The installer ends in its own time, whether the caller listens or not.
func (s *lifecycleService) Upgrade(request *machine.LifecycleServiceUpgradeRequest, stream machine.LifecycleService_UpgradeServer) error {
	b, n := s.boot, s.boot.node
	if err := b.mustBeConfigured("upgrade"); err != nil {
		return err
	}
	ref := request.GetSource().GetImageName()
	image, err := parseImage(ref)
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	if !n.hasPulled(ref) {
		return status.Errorf(codes.NotFound, "image %q: not found", ref)
	}
	if !b.changing.TryLock() {
		return status.Error(codes.FailedPrecondition, "another upgrade is in progress")
	}
	defer b.changing.Unlock()

	send := func(progress *machine.LifecycleServiceInstallProgress) {
		// A caller who went away misses the rest.
		_ = stream.Send(&machine.LifecycleServiceUpgradeResponse{Progress: progress})
	}
	say := func(format string, args ...any) {
		send(&machine.LifecycleServiceInstallProgress{
			Response: &machine.LifecycleServiceInstallProgress_Message{Message: fmt.Sprintf(format, args...)},
		})
	}
	say("running Talos installer %s", image.version)
	code := n.Faults().InstallExitCode
	if code == 0 {
		n.mu.Lock()
		n.disk.install(image)
		n.mu.Unlock()
		say("installation of %s complete", image.version)
	}
	send(&machine.LifecycleServiceInstallProgress{Response: &machine.LifecycleServiceInstallProgress_ExitCode{ExitCode: code}})
	return nil
}

// imageService answers the calls of ImageService, which came with Talos 1.13.
type imageService struct {
	machine.UnimplementedImageServiceServer

	boot *boot
}

// Pull fetches an image.
func (s *imageService) Pull(request *machine.ImageServicePullRequest, stream machine.ImageService_PullServer) error {
	n := s.boot.node
	ref := request.GetImageRef()
	switch {
	case ref == "":
		return status.Error(codes.InvalidArgument, "image reference is empty")
	case !n.world.hasImage(ref):
		return status.Errorf(codes.NotFound, "failed to resolve reference %q: not found", ref)
	case n.Faults().PullFails != "":
		return status.Error(codes.Unknown, n.Faults().PullFails)
	}
	n.mu.Lock()
	n.pulled[ref] = true
	n.mu.Unlock()
	return stream.Send(&machine.ImageServicePullResponse{Response: &machine.ImageServicePullResponse_Name{Name: ref}})
}

func (n *Node) hasPulled(ref string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pulled[ref]
}
