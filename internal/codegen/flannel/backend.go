// SPDX-License-Identifier: Apache-2.0

package flannel

// Backend has the options of all backends; each backend reads its own and passes over the rest.
type Backend struct {
	// Type, Port and MTU have fields of their own in Talos.
	Type string `json:"Type,omitempty"`
	Port int32  `json:"Port,omitempty"`
	MTU  int32  `json:"MTU,omitempty"`

	// VNI, GBP and Learning belong to vxlan, DirectRouting to vxlan and ipip.
	VNI           int32 `json:"VNI,omitempty"`
	GBP           bool  `json:"GBP,omitempty"`
	Learning      bool  `json:"Learning,omitempty"`
	DirectRouting bool  `json:"DirectRouting,omitempty"`

	// ListenPort, ListenPortV6, Mode and PersistentKeepaliveInterval (seconds) belong to wireguard, PSK to wireguard and ipsec.
	ListenPort                  uint16        `json:"ListenPort,omitempty"`
	ListenPortV6                uint16        `json:"ListenPortV6,omitempty"`
	Mode                        WireguardMode `json:"Mode,omitempty"`
	PersistentKeepaliveInterval int32         `json:"PersistentKeepaliveInterval,omitempty"`
	PSK                         string        `json:"PSK,omitempty"`

	// UDPEncap and ESPProposal belong to ipsec.
	UDPEncap    bool   `json:"UDPEncap,omitempty"`
	ESPProposal string `json:"ESPProposal,omitempty"`

	// The commands belong to extension.
	PreStartupCommand   string `json:"PreStartupCommand,omitempty"`
	PostStartupCommand  string `json:"PostStartupCommand,omitempty"`
	ShutdownCommand     string `json:"ShutdownCommand,omitempty"`
	SubnetAddCommand    string `json:"SubnetAddCommand,omitempty"`
	SubnetRemoveCommand string `json:"SubnetRemoveCommand,omitempty"`

	// AccessKeyID and AccessKeySecret belong to ali-vpc and tencent-vpc.
	AccessKeyID     string `json:"AccessKeyID,omitempty"`
	AccessKeySecret string `json:"AccessKeySecret,omitempty"`
}

// WireguardMode says how the wireguard backend uses IP versions.
type WireguardMode string

// The modes.
const (
	Separate WireguardMode = "separate"
	Auto     WireguardMode = "auto"
	IPv4     WireguardMode = "ipv4"
	IPv6     WireguardMode = "ipv6"
)
