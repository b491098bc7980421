// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// directories are those that the node has, of the few that anybody asks for: where etcd keeps its data, and the way there. A
// directory on a volume that is not mounted is there, and empty.
func (b *boot) directories() []string {
	c := b.config()
	if c == nil || !c.controlPlane() {
		return []string{"/var", "/var/lib"}
	}
	all := []string{"/var", "/var/lib", constants.EtcdDataPath}
	hidden := b.node.Faults().NotMounted
	if hidden == constants.EphemeralPartitionLabel || hidden == constants.EtcdDataVolumeID && c.dedicatedEtcd() {
		return all
	}
	if etcd := b.node.member(); etcd != nil && etcd.exists() {
		all = append(all, constants.EtcdDataPath+"/member")
	}
	return all
}

// List names the directory and what is in it. One that does not exist is an error of the call, without a code of its own.
// Source: Talos, internal/app/machined/internal/server, List; pkg/archiver, Walker.
func (s *machineService) List(request *machine.ListRequest, stream machine.MachineService_ListServer) error {
	root, known := path.Clean("/"+request.GetRoot()), s.boot.directories()
	if !slices.Contains(known, root) {
		return status.Errorf(codes.Unknown, "lstat %s: no such file or directory", root)
	}
	depth := 1
	if request.GetRecurse() {
		depth = int(request.GetRecursionDepth())
	}
	for _, directory := range known {
		relative, below := strings.CutPrefix(directory, strings.TrimSuffix(root, "/")+"/")
		if directory == root {
			relative, below = ".", true
		}
		if !below || depth > 0 && relative != "." && strings.Count(relative, "/") >= depth {
			continue
		}
		if err := stream.Send(&machine.FileInfo{
			Name: directory, RelativeName: relative, IsDir: true, Mode: uint32(fs.ModeDir | 0o700),
		}); err != nil {
			return err
		}
	}
	return nil
}
