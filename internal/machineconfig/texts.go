// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/hardware"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime/extensions"
	"github.com/siderolabs/talos/pkg/machinery/config/types/security"
)

var (
	errPEM      = errors.New("has no certificate: write it in PEM, with its BEGIN and END lines")
	errDevice   = errors.New("is no device: write its whole path, such as /dev/watchdog0")
	errClock    = errors.New("is no clock device: write its whole path, such as /dev/ptp0")
	errVariable = errors.New("is no environment variable: write it as NAME=value")
	errMount    = errors.New("is no whole path: write it from / on, such as /usr/local/etc/nut/upsmon.conf")
)

// textValues finds texts in a form of their own that Talos hands on as they are.
func (s *shapes) textValues(document config.Document) {
	switch typed := document.(type) {
	case *security.TrustedRootsConfigV1Alpha1:
		if typed.Certificates != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(typed.Certificates)) {
			s.add("/certificates", errPEM)
		}
	case *security.ImageVerificationConfigV1Alpha1:
		for i, rule := range typed.ConfigRules {
			s.verification(fmt.Sprintf("/rules/%d", i), rule)
		}
	case *extensions.ServiceConfigV1Alpha1:
		s.extension(typed)
	case *hardware.PCIDriverRebindConfigV1Alpha1:
		if typed.MetaName != "" && !pciAddress.MatchString(typed.MetaName) {
			s.add("/name", errors.New("is no PCI address: write it as lspci -D prints it, such as 0000:04:00.0"))
		}
	case *runtime.WatchdogTimerV1Alpha1:
		if typed.WatchdogDevice != "" && !isDevice(typed.WatchdogDevice) {
			s.add("/device", errDevice)
		}
	case *k8s.KubeFlannelCNIConfigV1Alpha1:
		s.flannel(typed.FlannelBackendType)
	case *network.TimeSyncConfigV1Alpha1:
		if typed.TimePTP != nil {
			s.each("/ptp/devices", typed.TimePTP.Devices, isDevice, errClock)
		}
	}
}

func (s *shapes) extension(service *extensions.ServiceConfigV1Alpha1) {
	for i, file := range service.ServiceConfigFiles {
		if file.ConfigFileMountPath != "" && !path.IsAbs(file.ConfigFileMountPath) {
			s.add(fmt.Sprintf("/configFiles/%d/mountPath", i), errMount)
		}
	}

	s.each("/environment", service.ServiceEnvironment, isAssignment, errVariable)
}

// flannelBackends are those of Flannel, the usual one first.
var flannelBackends = []string{"vxlan", "host-gw", "wireguard", "ipip", "ipsec", "udp", "alloc", "extension", "ali-vpc", "tencent-vpc"}

func (s *shapes) flannel(backend string) {
	if backend != "" && !slices.Contains(flannelBackends, backend) {
		s.add("/backendType", fmt.Errorf("is %q, which Flannel does not have, and no pod would get a network: vxlan is usual, others are %s",
			backend, strings.Join(flannelBackends[1:], ", ")))
	}
}

func isDevice(name string) bool { return strings.HasPrefix(path.Clean(name), "/dev/") }

var (
	pciAddress = regexp.MustCompile(`^[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]$`)
	assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
)

func isAssignment(text string) bool { return assignment.MatchString(text) }

func (s *shapes) verification(pointer string, rule security.ImageVerificationRuleV1Alpha1) {
	if keyless := rule.RuleKeylessVerifier; keyless != nil {
		if _, err := regexp.Compile(keyless.KeylessSubjectRegex); err != nil {
			s.add(pointer+"/keyless/subjectRegex", fmt.Errorf("is no regular expression, and no image would be accepted: %w", err))
		}
	}

	if key := rule.RulePublicKeyVerifier; key != nil && key.ConfigCertificate != "" {
		if block, _ := pem.Decode([]byte(key.ConfigCertificate)); block == nil {
			s.add(pointer+"/publicKey/certificate", errPEM)
		}
	}
}
