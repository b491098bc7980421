// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/cri"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"
	"golang.org/x/net/http/httpguts"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// illFormed finds values of one document that machinery hands on as they are, and that the kernel, LUKS, udev, containerd, HTTP or a resolver
// do not take. On the node nothing comes of them but a line in a log, or Talos tries for ever; broken TOML keeps containerd, and with it
// every pod, from starting.
// With onTalos, the machine's files are those of a Talos that was booted, and not of a container.
func illFormed(documents []config.Document, onTalos bool) []finding {
	found := &shapes{onTalos: onTalos}

	found.legacy(documents)

	for _, document := range documents {
		found.id = merge.IDOf(document)
		found.linkValues(document)
		found.volumeValues(document)
		found.hostValues(document)
		found.textValues(document)
		found.variables(document)

		switch typed := document.(type) {
		case *runtime.SysctlConfigV1Alpha1:
			found.parameters("/params", typed.Params, errSysctl)
		case *runtime.SysfsConfigV1Alpha1:
			found.parameters("/params", typed.Params, errSysfs)
		case *runtime.KernelModuleConfigV1Alpha1:
			found.module("/name", typed.MetaName)
		case *runtime.UdevRulesConfigV1Alpha1:
			found.udev("/rules", typed.UdevRules)
		case *k8s.KubeExternalManifestConfigV1Alpha1:
			found.headers("/headers", typed.HeadersSpec)
		case *cri.CRICustomizationConfigV1Alpha1:
			found.toml("/content", typed.CustomizationContent)
		}
	}

	return found.findings
}

// shapes collects what is ill-formed in one document after the other.
type shapes struct {
	id       merge.ID
	onTalos  bool
	findings []finding
}

func (s *shapes) add(pointer string, err error) {
	s.findings = append(s.findings, finding{document: s.id, field: pointer, err: err})
}

func (s *shapes) legacy(documents []config.Document) {
	s.id = merge.ID{Kind: merge.LegacyKind}
	machine, cluster := legacyOf(documents)

	s.parameters("/machine/sysctls", machine.MachineSysctls, errSysctl)
	s.parameters("/machine/sysfs", machine.MachineSysfs, errSysfs)
	s.headers("/cluster/extraManifestHeaders", cluster.ExtraManifestHeaders)
	s.legacyValues(machine, cluster)

	if machine.MachineKernel != nil {
		for i, module := range machine.MachineKernel.KernelModules {
			s.module(fmt.Sprintf("/machine/kernel/modules/%d/name", i), module.ModuleName)
		}
	}

	if machine.MachineUdev != nil {
		s.udev("/machine/udev/rules", machine.MachineUdev.UdevRules)
	}

	for i, file := range machine.MachineFiles {
		if file.FilePath == criCustomization {
			s.toml(fmt.Sprintf("/machine/files/%d/content", i), file.FileContent)
		}
	}
}

var (
	errSysctl = errors.New("is no name of a kernel parameter, and would be skipped: write it as sysctl does, such as net.ipv4.ip_forward")
	errSysfs  = errors.New("is no name of a value below /sys, and would be skipped: write its path with dots, such as kernel.mm.ksm.run")
)

// parameters checks the names of files below /proc/sys and /sys, and that none is named twice, in the two ways to write it.
func (s *shapes) parameters(pointer string, parameters map[string]string, wrong error) {
	spelt := map[string]string{}

	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		at, one := pointer+"/"+merge.EscapePointer(name), kernelParameter(name)

		switch other, twice := spelt[one]; {
		case slices.ContainsFunc(strings.Split(one, "/"), notFile):
			s.add(at, wrong)
		case twice && parameters[other] != parameters[name]:
			s.add(at, fmt.Errorf("is the same parameter as %s, with another value: remove one of the two", other))
		}

		spelt[one] = name
	}
}

// notFile tells what cannot be a part of a path.
func notFile(part string) bool {
	return part == "" || strings.Trim(part, ".") == "" || strings.ContainsFunc(part, func(r rune) bool { return r <= ' ' || r > '~' || r == '=' })
}

// moduleName is what modprobe takes: a name, and no file.
var moduleName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*$`)

func (s *shapes) module(pointer, name string) {
	if name != "" && !moduleName.MatchString(name) {
		s.add(pointer, errors.New("is no name of a kernel module: write it as lsmod does, such as nvme_tcp, with parameters in a list of their own"))
	}
}

// udev finds several rules in one entry: Talos joins the lines of an entry into one rule. A rule may go on in the next line after a comma.
func (s *shapes) udev(pointer string, rules []string) {
	for i, rule := range rules {
		lines := strings.Split(strings.TrimSpace(rule), "\n")

		for _, line := range lines[:len(lines)-1] {
			if !strings.HasSuffix(strings.TrimSpace(line), ",") {
				s.add(fmt.Sprintf("%s/%d", pointer, i), errors.New("has several lines, which Talos joins into one rule: write each rule as an entry of its own"))

				break
			}
		}
	}
}

// headers checks names and values. A value may be a token, and is not shown.
func (s *shapes) headers(pointer string, headers map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		at := pointer + "/" + merge.EscapePointer(name)

		switch {
		case !httpguts.ValidHeaderFieldName(name):
			s.add(at, errors.New("is no name of an HTTP header, and the manifest would not be fetched: it has letters, digits and dashes, such as PRIVATE-TOKEN"))
		case !httpguts.ValidHeaderFieldValue(headers[name]):
			s.add(at, errors.New("has a value that no HTTP header can have, and the manifest would not be fetched: it must be one line of text"))
		}
	}
}

// toml reads what containerd is to read. The error has the place alone: the parser's words may quote a credential.
func (s *shapes) toml(pointer, content string) {
	var into map[string]any

	err := toml.Unmarshal([]byte(content), &into)
	if err == nil {
		return
	}

	place := ""
	if detail, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := detail.Position()
		place = fmt.Sprintf(" (line %d, column %d)", line, column)
	}

	s.add(pointer, fmt.Errorf("is not TOML%s, and containerd would not start: correct it, or remove the document", place))
}
