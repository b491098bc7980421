// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"fmt"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// lifecycleService answers the calls of LifecycleService, which came with Talos 1.13.
type lifecycleService struct {
	machine.UnimplementedLifecycleServiceServer

	boot *boot
}

// Install is for a machine that runs from a medium. One whose disk has a system says so.
func (s *lifecycleService) Install(*machine.LifecycleServiceInstallRequest, machine.LifecycleService_InstallServer) error {
	n := s.boot.node
	n.mu.Lock()
	installed := n.disk.installed
	n.mu.Unlock()
	if installed {
		return status.Error(codes.AlreadyExists, "machine is already installed")
	}
	return status.Error(codes.Unimplemented, "a simulated machine is installed by its configuration")
}

// Upgrade installs an image that was pulled into the boot entry that is not the default. The node goes on as it was: no
// drain, no reboot, no look at etcd. The installer ends in its own time, whether the caller listens or not; what it ends
// with is told in the stream and is no error of the call. Source: Talos, internal/app/lifecycle.
func (s *lifecycleService) Upgrade(request *machine.LifecycleServiceUpgradeRequest, stream machine.LifecycleService_UpgradeServer) error {
	b, n := s.boot, s.boot.node
	if !b.installing.TryLock() {
		return status.Error(codes.FailedPrecondition, "another installation/upgrade is already in progress")
	}
	defer b.installing.Unlock()
	ref := request.GetSource().GetImageName()
	remark(stream.Context()).say("image=%s", ref)
	n.mu.Lock()
	installed := n.disk.installed
	n.mu.Unlock()
	switch {
	case !installed:
		return status.Error(codes.FailedPrecondition, "machine is not installed")
	case ref == "":
		return status.Error(codes.InvalidArgument, "installer image name is required")
	case !n.hasPulled(ref):
		return status.Errorf(codes.Internal, "upgrade failed: installer image %q not found in containerd store", ref)
	}
	image, err := parseImage(ref)
	if err != nil {
		return status.Errorf(codes.Internal, "upgrade failed: %v", err)
	}
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
	if hold := n.Faults().InstallTakes; hold > 0 {
		timer := time.NewTimer(hold)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-b.ctx.Done():
			return errGoingDown // the power went while it installed: nothing was changed
		}
	}
	code, refused := n.installUpgrade(image, b)
	switch {
	case refused != nil:
		say("pre-flight checks failed: %v", refused)
	case code == 0:
		say("installation of %s complete", image.version)
	}
	remark(stream.Context()).say("exit=%d", code)
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
	remark(stream.Context()).say("image=%s", ref)
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
