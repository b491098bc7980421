// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"slices"

	"github.com/maesh-dev/ichor/internal/codegen/model"
)

// Why types need rows.
const (
	textual = "machinery encodes it as text"
	merges  = "a plain list on the wire; only the way it merges is its own"
)

// The wire forms are those that Talos' own decoder accepts, so nothing is converted.
func scalars() []model.ScalarRow {
	return slices.Concat(everywhere(), files(), addresses(), ofTheLegacyDocument(), enums())
}

// everywhere are the types that kinds of all sorts use.
func everywhere() []model.ScalarRow {
	return []model.ScalarRow{
		{
			Go: "time.Duration", Pattern: `^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`, MaxLength: 64,
			Doc: "A duration such as 1h30m.", Examples: []string{"1h30m0s", "250ms"}, Reason: textual + ", never as a number",
		},
		{
			Go: "cel.Expression", MinLength: 1, MaxLength: 4096,
			Doc: "A CEL expression.", Examples: []string{`disk.transport == "nvme"`}, Reason: textual,
		},
		{
			Go: "config/types/block.ByteSize", Pattern: `^[0-9]+(\.[0-9]+)? ?([kKMGTPE]i?)?B?$`, MaxLength: 32,
			Doc: "A size such as 10GiB.", Examples: []string{"10GiB", "2.5GB", "1073741824"}, Reason: textual,
		},
		{
			Go: "config/types/block.Size", Pattern: `^-?[0-9]+(\.[0-9]+)? ?(%|([kKMGTPE]i?)?B?)$`, MaxLength: 32,
			Doc:      "A size, or a share of the disk such as 50%. Negative: what is left free (Talos 1.13).",
			Examples: []string{"50%", "10GiB", "-5GiB"}, Reason: textual,
		},
		{
			Go: "config/types/meta.ArgValue", Base: model.Arguments, MaxLength: 4096,
			Doc: "A list, for one value too; several repeat the flag (Talos 1.14).", Examples: []string{`["4"]`},
			Reason: "a string or a list of strings, which no schema can say; always a list here",
		},
	}
}

// files are the types of files.
func files() []model.ScalarRow {
	const number = "a number on the wire; Talos refuses a string"

	mode := func(goType string) model.ScalarRow {
		return model.ScalarRow{
			Go: goType, Base: model.Integer, Maximum: 4095,
			Doc: "File permissions; the octal 0644 is 420.", Examples: []string{"420"}, Reason: number,
		}
	}

	return []model.ScalarRow{mode("config/types/runtime.EtcFileMode"), mode("config/types/v1alpha1.FileMode")}
}

// addresses are the types of networks.
func addresses() []model.ScalarRow {
	return []model.ScalarRow{
		{
			Go: "config/types/meta.Addr", MaxLength: 64, Pattern: addrPattern,
			Doc: addrDoc, Examples: addrExamples(), Reason: textual,
		},
		{
			Go: "config/types/meta.AddrPort", MaxLength: 80, Pattern: addrPortPattern,
			Doc: addrPortDoc, Examples: addrPortExamples(), Reason: textual,
		},
		{
			Go: "config/types/meta.Prefix", MaxLength: 64, Pattern: prefixPattern,
			Doc: prefixDoc, Examples: prefixExamples(), Reason: textual,
		},
		{
			Go: "net/netip.Prefix", MaxLength: 64, Pattern: prefixPattern,
			Doc: prefixDoc, Examples: prefixExamples(), Reason: textual,
		},
		{
			Go: "config/types/meta.URL", MinLength: 1, MaxLength: 1024, Rule: noUserInfo, Message: userInfoMessage,
			Doc: "A URL without user and password.", Examples: []string{"https://mirror.example.org/v2/"}, Reason: textual,
		},
		{
			Go: "config/types/network.PortRange", Base: model.IntOrString, Pattern: `^[0-9]{1,5}-[0-9]{1,5}$`, MaxLength: 11,
			Doc: "A port or a range of ports.", Examples: []string{"1000-2000"}, Reason: "a number, or a string for a range; Talos refuses a single port as a string",
		},
		{
			Go: "net/netip.Addr", MaxLength: 64, Pattern: addrPattern,
			Doc: addrDoc, Examples: addrExamples(), Reason: textual,
		},
		{
			Go: "net/netip.AddrPort", MaxLength: 80, Pattern: addrPortPattern,
			Doc: addrPortDoc, Examples: addrPortExamples(), Reason: textual,
		},
		{
			Go: "nethelpers.HardwareAddr", MaxLength: 400, Pattern: `^([0-9a-fA-F]{2}:)*[0-9a-fA-F]{2}$`,
			Doc: "A hardware address such as 00:1a:2b:3c:4d:5e.", Examples: []string{"00:1a:2b:3c:4d:5e"}, Reason: textual,
		},
		{
			Go: "nethelpers.RoutingTable", Base: model.IntOrString, Pattern: `^(unspec|default|main|local|[0-9]{1,10})$`, MaxLength: 10,
			Doc: "A routing table's name or number.", Examples: []string{"main", "123"}, Reason: textual,
		},
	}
}

// ofTheLegacyDocument are types that the modern kinds do without.
func ofTheLegacyDocument() []model.ScalarRow {
	return []model.ScalarRow{
		{
			Go: "config/types/v1alpha1.Endpoint", MinLength: 1, MaxLength: 1024, Rule: noUserInfo, Message: userInfoMessage,
			Doc: "A URL without user and password.", Examples: []string{"udp://10.0.0.1:5514/"}, Reason: textual,
		},
		{
			Go: "config/types/v1alpha1.Base64Bytes", Base: model.Bytes, MaxLength: 65536,
			Examples: []string{"AQID"}, Reason: "bytes in base64",
		},
		{
			Go: "config/types/v1alpha1.DiskSize", Pattern: `^[0-9]+(\.[0-9]+)? ?([kKMGTPE]i?)?B?$`, MaxLength: 32,
			Doc: "A size such as 100GB.", Examples: []string{"100 GB", "10GiB"}, Reason: "a string or a number of bytes",
		},
		{
			Go: "config/types/v1alpha1.InstallDiskSizeMatcher", Pattern: `^(>=|<=|>|<|==)? *[0-9]+(\.[0-9]+)? *([kKMGTPE]i?)?B?$`, MaxLength: 32,
			Doc: "A size, or a comparison such as >= 100GB.", Examples: []string{">= 100GB", "4GB"}, Reason: textual,
		},
	}
}

// enums list the values as machinery spells them when it writes; it reads them in any case.
func enums() []model.ScalarRow {
	return []model.ScalarRow{
		enum("config/types/v1alpha1.InstallDiskType", "ssd", "hdd", "nvme", "sd"),
		enum("config/config.ContainerNetworkMode", "none", "host"),
		enum("config/config.ContainerSecurityProfile", "restricted", "privileged"),
		enum("nethelpers.ADLACPActive", "off", "on"),
		enum("nethelpers.ADSelect", "stable", "bandwidth", "count"),
		enum("nethelpers.ARPAllTargets", "any", "all"),
		enum("nethelpers.ARPValidate", "none", "active", "backup", "all", "filter", "filter-active", "filter-backup"),
		enum("nethelpers.AutoHostnameKind", "off", "talos-addr", "stable"),
		enum("nethelpers.BondMode", "balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb"),
		enum("nethelpers.BondXmitHashPolicy", "layer2", "layer3+4", "layer2+3", "encap2+3", "encap3+4"),
		enum("nethelpers.ClientIdentifier", "none", "mac", "duid"),
		enum("nethelpers.DNSProtocol", "Do53", "DoT", "DoH"),
		enum("nethelpers.DefaultAction", "accept", "block"),
		enum("nethelpers.FailOverMAC", "none", "active", "follow"),
		enum("nethelpers.LACPRate", "slow", "fast"),
		enum("nethelpers.PrimaryReselect", "always", "better", "failure"),
		enum("nethelpers.Protocol", "icmp", "tcp", "udp", "icmpv6"),
		enum("nethelpers.RoutingRuleAction", "unspec", "unicast", "blackhole", "unreachable", "prohibit"),
		enum("nethelpers.VLANProtocol", "802.1q", "802.1ad"),
		enum("nethelpers.WOLMode", "phy", "unicast", "multicast", "broadcast", "magic", "magicsecure", "filter"),
		without(enum("resources/block.EncryptionProviderType", "luks2"), "none"),
		without(enum("resources/block.FilesystemType", "none", "xfs", "ext4", "virtiofs", "btrfs"), "vfat", "iso9660", "swap"),
		without(enum("resources/block.VolumeType", "partition", "disk", "directory"), "tmpfs", "symlink", "overlay", "external"),
		enum("resources/storage.LVMLogicalVolumeType", "linear", "raid1", "raid0", "raid10"),
		enum("resources/storage.MDLevel", "raid1"),
		enum("resources/storage.MDMetadata", "1.0", "1.2"),
	}
}

// A URL may have user and password without a scheme too, so no @ is let through.
const (
	noUserInfo      = `!self.contains('@')`
	userInfoMessage = "a user or password must not stand in a URL here; any other @ is written %40"
)

const (
	addrPattern     = `^[0-9a-fA-F:.]+(%[0-9A-Za-z._-]+)?$`
	addrDoc         = "An IP address."
	addrPortPattern = `^([0-9.]+|\[[0-9a-fA-F:.]+(%[0-9A-Za-z._-]+)?\]):[0-9]{1,5}$`
	addrPortDoc     = "An IP address and a port."
	prefixPattern   = `^[0-9a-fA-F:.]+/[0-9]{1,3}$`
	prefixDoc       = "A network such as 10.0.0.0/8."
)

func addrExamples() []string { return []string{"10.0.0.1", "fe80::1%eth0"} }

func addrPortExamples() []string { return []string{"10.0.0.1:51820", "[fd00::1]:51820"} }

func prefixExamples() []string { return []string{"10.0.0.0/8", "fd00::/64"} }

func enum(goType string, values ...string) model.ScalarRow {
	return model.ScalarRow{Go: goType, Enum: values, Reason: textual}
}

// without names the values that Talos refuses wherever the type is used.
func without(row model.ScalarRow, refused ...string) model.ScalarRow {
	row.Refused = refused

	return row
}

func lists() []model.ListRow {
	return []model.ListRow{
		{Go: "config/types/network.IngressConfig", Reason: merges},
		{Go: "config/types/network.PortRanges", Reason: merges},
		{Go: "config/types/network.SearchDomainList", Reason: merges},
		{Go: "config/types/security.ImageVerificationRules", Reason: merges},
		{Go: "config/types/runtime/extensions.ConfigFileList", Reason: merges},
		{Go: "config/types/v1alpha1.AdmissionPluginConfigList", Reason: merges},
		{Go: "config/types/v1alpha1.AuthorizationConfigAuthorizerConfigList", Reason: merges},
		{Go: "config/types/v1alpha1.ClusterInlineManifests", Reason: merges},
		{Go: "config/types/v1alpha1.NetworkDeviceList", Reason: merges},
		{Go: "config/types/v1alpha1.VlanList", Reason: merges},
	}
}

func maps() []model.MapRow {
	return []model.MapRow{
		{Go: "config/types/meta.Args", Reason: "a plain map on the wire; it merges by key"},
	}
}
