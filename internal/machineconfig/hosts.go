// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/cri"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// hostName is what a resolver can be asked for. Underscores are in use, whatever the standard says.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?$`)

// IsHost tells what a patch takes for a host, also with a wildcard for its first label: one rule for all objects.
func IsHost(text string) bool { return isSAN(text) }

// isHost tells a host name or an IP address.
func isHost(host string) bool {
	_, err := netip.ParseAddr(host)

	return err == nil || len(host) <= 253 && hostName.MatchString(host)
}

var (
	errHost    = errors.New("is no host name and no IP address: write it without scheme, port, path and spaces, such as ntp.example.com")
	errAddress = errors.New("is no IP address: write it as 10.0.0.1 or 2001:db8::1, without port and prefix length")
	errAlias   = errors.New("is no host name, and would break the machine's /etc/hosts: write one name an entry, such as registry.example.com")
	errDomain  = errors.New("is no domain: write it as example.com")
	errSAN     = errors.New("is nothing that a certificate can be for, and the machine would get none: write a host name, *.example.com or an IP address, without scheme and port")
	errPort    = errors.New("has no host and port: write it as proxy.example.com:3128")
	errHostKey = errors.New("is no host of a registry: write it as images name it, such as docker.io or registry.example.com:5000, without scheme and path")
)

// hostValues finds hosts, addresses and ports that are none. Machinery has most of them as plain text.
func (s *shapes) hostValues(document config.Document) {
	switch typed := document.(type) {
	case *v1alpha1.Config:
		s.legacyHosts(typed)
	case *network.StaticHostConfigV1Alpha1:
		s.each("/hostnames", typed.Hostnames, isHost, errAlias)
	case *network.ResolverConfigV1Alpha1:
		s.each("/searchDomains/domains", typed.ResolverSearchDomains.SearchDomains, isDomain, errDomain)
	case *network.TimeSyncConfigV1Alpha1:
		if typed.TimeNTP != nil {
			s.each("/ntp/servers", typed.TimeNTP.Servers, isHost, errHost)
		}
	case *network.TCPProbeConfigV1Alpha1:
		s.hostPort("/endpoint", typed.TCPEndpoint)
	case *runtime.EventSinkV1Alpha1:
		s.hostPort("/endpoint", typed.Endpoint)
	case *runtime.KmsgLogV1Alpha1:
		if typed.KmsgLogURL.URL != nil && typed.KmsgLogURL.Port() != "" {
			s.hostPort("/url", typed.KmsgLogURL.Host)
		}
	case *cri.RegistryMirrorConfigV1Alpha1:
		s.registry(typed.MetaName)
	case *cri.RegistryAuthConfigV1Alpha1:
		s.registry(typed.MetaName)
	case *cri.RegistryTLSConfigV1Alpha1:
		s.registry(typed.MetaName)
	default:
		s.kubernetesHosts(document)
	}
}

func (s *shapes) kubernetesHosts(document config.Document) {
	switch typed := document.(type) {
	case *k8s.KubeAPIServerConfigV1Alpha1:
		s.each("/certExtraSANs", typed.PodCertExtraSANs, isSAN, errSAN)

		if port := typed.PodAPIPort; port != nil {
			s.port("/apiPort", *port)
		}
	case *k8s.KubeletConfigV1Alpha1:
		s.each("/clusterDNS", typed.KubeletClusterDNS, isIP, errAddress)
	case *k8s.KubeTalosAPIAccessConfigV1Alpha1:
		s.each("/allowedKubernetesNamespaces", typed.AccessAllowedKubernetesNamespaces, isNamespace, errNamespace)
	case *k8s.KubeExternalManifestConfigV1Alpha1:
		if typed.URLSpec.URL != nil && typed.URLSpec.Hostname() == "" {
			s.add("/url", errors.New("has no host, and the manifest would not be fetched: write it as https://example.com/manifest.yaml"))
		}
	}
}

var errNamespace = errors.New("is no name of a namespace: lower case letters, digits and '-'")

func (s *shapes) legacyHosts(document *v1alpha1.Config) {
	machine, cluster := legacyOf([]config.Document{document})

	s.each("/machine/certSANs", machine.MachineCertSANs, isSAN, errSAN)
	s.legacyServices(machine)

	if settings := machine.MachineNetwork; settings != nil {
		s.each("/machine/network/nameservers", settings.NameServers, isIP, errAddress)
		s.each("/machine/network/searchDomains", settings.Searches, isDomain, errDomain)

		for i, host := range settings.ExtraHostEntries {
			at := fmt.Sprintf("/machine/network/extraHostEntries/%d", i)
			s.each(at+"/aliases", host.HostAliases, isHost, errAlias)

			if !isIP(host.HostIP) {
				s.add(at+"/ip", errAddress)
			}
		}
	}

	if machine.MachineTime != nil {
		s.each("/machine/time/servers", machine.MachineTime.TimeServers, isTimeSource, errHost)
	}

	if machine.MachineKubelet != nil {
		s.each("/machine/kubelet/clusterDNS", machine.MachineKubelet.KubeletClusterDNS, isIP, errAddress)
	}

	if features := machine.MachineFeatures; features != nil && features.KubernetesTalosAPIAccessConfig != nil {
		s.each("/machine/features/kubernetesTalosAPIAccess/allowedKubernetesNamespaces",
			features.KubernetesTalosAPIAccessConfig.AccessAllowedKubernetesNamespaces, isNamespace, errNamespace)
	}

	if cluster.APIServerConfig != nil {
		s.each("/cluster/apiServer/certSANs", cluster.APIServerConfig.ExtraCertSANs, isSAN, errSAN)
	}

	if cluster.ControlPlane != nil && cluster.ControlPlane.LocalAPIServerPort != 0 {
		s.port("/cluster/controlPlane/localAPIServerPort", cluster.ControlPlane.LocalAPIServerPort)
	}
}

// each finds the entries of a list that are not what they should be.
func (s *shapes) each(pointer string, entries []string, right func(string) bool, wrong error) {
	for i, entry := range entries {
		if !right(entry) {
			s.add(fmt.Sprintf("%s/%d", pointer, i), wrong)
		}
	}
}

func isIP(text string) bool {
	_, err := netip.ParseAddr(text)

	return err == nil
}

// isDomain tells a domain; the root itself turns a search off.
func isDomain(text string) bool { return text == "." || hostName.MatchString(text) }

// isTimeSource tells a server, or a clock of the machine, which the legacy document has in the same list.
func isTimeSource(text string) bool { return strings.HasPrefix(text, "/dev/") || isHost(text) }

func isSAN(text string) bool { return isHost(strings.TrimPrefix(text, "*.")) }

func isNamespace(text string) bool { return len(validation.IsDNS1123Label(text)) == 0 }

func (s *shapes) hostPort(pointer, text string) {
	if text == "" {
		return
	}

	host, port, err := net.SplitHostPort(text)
	if err != nil || !isHost(host) {
		s.add(pointer, errPort)

		return
	}

	if number, err := strconv.Atoi(port); err != nil || number < 1 || number > 65535 {
		s.add(pointer, fmt.Errorf("has the port %q, which must be a number from 1 to 65535", port))
	}
}

func (s *shapes) port(pointer string, port int) {
	if port < 1 || port > 65535 {
		s.add(pointer, fmt.Errorf("is %d, and a port is a number from 1 to 65535", port))
	}
}

// registry checks the host that images of a registry begin with. A star stands for all others.
func (s *shapes) registry(name string) {
	if name != "" && !isRegistry(name) {
		s.add("/name", errHostKey)
	}
}

// isRegistry tells the host of a registry, with a port if it has one, or the star that stands for all.
func isRegistry(name string) bool {
	host, _, _ := strings.Cut(name, ":")

	return name == "*" || !strings.ContainsAny(name, "/@ ") && (isHost(strings.Trim(host, "[]")) || strings.HasPrefix(name, "["))
}

// legacyServices looks at the registries and at where logs go: a mirror that is no URL is never asked, and a log without a port never sent.
func (s *shapes) legacyServices(machine *v1alpha1.MachineConfig) {
	hosts := func(pointer string, names []string) {
		for _, name := range names {
			if !isRegistry(name) {
				s.add(pointer+merge.EscapePointer(name), errHostKey)
			}
		}
	}

	const mirrors, configs = "/machine/registries/mirrors/", "/machine/registries/config/"

	hosts(mirrors, slices.Sorted(maps.Keys(machine.MachineRegistries.RegistryMirrors)))
	hosts(configs, slices.Sorted(maps.Keys(machine.MachineRegistries.RegistryConfig)))

	for _, name := range slices.Sorted(maps.Keys(machine.MachineRegistries.RegistryMirrors)) {
		mirror := machine.MachineRegistries.RegistryMirrors[name]
		if mirror == nil {
			continue
		}

		s.each(mirrors+merge.EscapePointer(name)+"/endpoints", mirror.MirrorEndpoints, isWebURL, errWebURL)
	}

	if machine.MachineLogging == nil {
		return
	}

	for i, destination := range machine.MachineLogging.LoggingDestinations {
		if endpoint := destination.LoggingEndpoint; endpoint != nil && endpoint.URL != nil && endpoint.Host != "" {
			s.hostPort(fmt.Sprintf("/machine/logging/destinations/%d/endpoint", i), endpoint.Host)
		}
	}
}

var errWebURL = errors.New("is no URL of a registry, and would never be asked: write it with its scheme, https:// or http://, such as https://mirror.example.com:5000")

func isWebURL(text string) bool {
	parsed, err := url.Parse(text)

	return err == nil && (parsed.Scheme == "https" || parsed.Scheme == "http") && parsed.Host != ""
}
