// SPDX-License-Identifier: Apache-2.0

package talossim

import (
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/role"
)

var (
	adminOnly  = role.MakeSet(role.Admin)
	operators  = role.MakeSet(role.Admin, role.Operator)
	readers    = role.MakeSet(role.Admin, role.Operator, role.Reader)
	etcdReader = role.MakeSet(role.Admin, role.Operator, role.Reader, role.EtcdBackup)
)

// allowedRoles are those of which a caller needs one, by the method's full name. A method that is not here needs an
// administrator. Source: Talos, internal/app/machined/pkg/system/services/machined.go.
var allowedRoles = methods(map[string]map[string]role.Set{
	"/machine.MachineService/": {
		// A reader may apply a configuration in maintenance mode, which the method itself checks.
		"ApplyConfiguration": role.MakeSet(role.Admin, role.Reader),

		"Reboot Shutdown Restart ServiceStart ServiceStop ServiceRestart ImagePull PacketCapture": operators,
		"EtcdAlarmDisarm EtcdDefragment": operators,

		"Version Hostname ServiceList Events ImageList List DiskUsage Logs LogsContainers Dmesg Mounts": readers,
		"Memory LoadAvg CPUInfo CPUFreqStats DiskStats NetworkDeviceStats SystemStat Stats":             readers,
		"Containers Processes Netstat": readers,

		"EtcdMemberList EtcdStatus EtcdAlarmList": etcdReader,
		"MetaWrite MetaDelete":                    role.MakeSet(role.Admin, role.MetaWriter),

		"EtcdSnapshot": role.MakeSet(role.Admin, role.Operator, role.EtcdBackup),
	},
	"/machine.ImageService/": {
		"List":   readers,
		"Pull":   operators,
		"Verify": role.MakeSet(role.Admin, role.Operator, role.Reader, role.ImageVerifier),
	},
	// Each type of resource has a say of its own, in accessRule.
	"/cosi.resource.State/": {
		"Get List Watch": readers,
	},
	"/storage.StorageService/": {
		"Disks": readers,
		// In maintenance mode a reader may, which the service itself checks.
		"BlockDeviceWipe": role.MakeSet(role.Admin, role.Reader),
	},
	"/time.TimeService/": {
		"Time TimeCheck": readers,
	},
})

func methods(services map[string]map[string]role.Set) map[string]role.Set {
	rules := map[string]role.Set{}
	for service, rows := range services {
		for names, roles := range rows {
			for name := range strings.FieldsSeq(names) {
				rules[service+name] = roles
			}
		}
	}
	return rules
}

func mayCall(method string, roles role.Set) bool {
	allowed, known := allowedRoles[method]
	if !known {
		allowed = adminOnly
	}
	return allowed.IncludesAny(roles)
}
