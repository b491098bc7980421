// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/cri"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// twoForms compares what the legacy document says with what documents of its own say of the same. Talos refuses some settings in two
// forms, which movedSettings has. The others it joins on the node, and there one form wins whatever the layers are: a value of a machine
// could lose to one of its cluster, without a word.
type twoForms struct {
	findings []finding
}

// conflict is two values of one setting. Legacy and other are where they stand; wins says which of them a node takes, and write where
// both belong.
func (t *twoForms) conflict(legacy string, other address, wins, write string) {
	place := strings.TrimSpace(other.id.String() + " " + other.pointer)

	t.findings = append(t.findings, finding{
		document: merge.ID{Kind: merge.LegacyKind}, field: legacy, twin: other,
		err: fmt.Errorf("differs from what %s says of the same, and a node takes %s whatever the layers are: write it as %s, where the later layer wins", place, wins, write),
	})
}

const (
	winsDocument = "the document's"
	winsEither   = "one of the two"
)

// entries compares two maps.
func (t *twoForms) entries(legacyPointer string, legacy map[string]string, id merge.ID, pointer string, modern map[string]string, name func(string) string) {
	if len(legacy) == 0 || len(modern) == 0 {
		return
	}

	spelt := make(map[string]string, len(modern))
	for key := range modern {
		spelt[name(key)] = key
	}

	for _, key := range slices.Sorted(maps.Keys(legacy)) {
		if other, both := spelt[name(key)]; both && legacy[key] != modern[other] {
			t.conflict(legacyPointer+"/"+merge.EscapePointer(key), address{id, pointer + "/" + merge.EscapePointer(other)},
				winsDocument, fmt.Sprintf("%s (%s)", id.Kind, strings.TrimPrefix(pointer, "/")))
		}
	}
}

func asIs(key string) string { return key }

// inTwoForms finds settings that stand in both forms with different values.
func inTwoForms(documents []config.Document) []finding {
	legacy, ok := documentOf[*v1alpha1.Config](documents)
	if !ok || legacy.MachineConfig == nil {
		return nil
	}

	t := &twoForms{}

	for _, document := range documents {
		t.compare(legacy, document)
	}

	return t.findings
}

func (t *twoForms) compare(legacy *v1alpha1.Config, document config.Document) {
	machine, id := legacy.MachineConfig, merge.IDOf(document)

	switch typed := document.(type) {
	case *runtime.SysctlConfigV1Alpha1:
		t.entries("/machine/sysctls", machine.MachineSysctls, id, "/params", typed.Params, kernelParameter)
	case *runtime.SysfsConfigV1Alpha1:
		t.entries("/machine/sysfs", machine.MachineSysfs, id, "/params", typed.Params, kernelParameter)
	case *runtime.EnvironmentV1Alpha1:
		t.entries("/machine/env", machine.MachineEnv, id, "/variables", typed.EnvironmentVariables, asIs)
	case *runtime.KernelModuleConfigV1Alpha1:
		t.module(machine, id, typed)
	case *runtime.UdevRulesConfigV1Alpha1:
		t.udev(machine, id, typed)
	case *cri.RegistryMirrorConfigV1Alpha1, *cri.RegistryAuthConfigV1Alpha1, *cri.RegistryTLSConfigV1Alpha1:
		t.registry(machine, id, document)
	case *k8s.KubeStaticPodConfigV1Alpha1:
		t.pod(machine, id, typed)
	case config.NetworkCommonLinkConfig:
		t.link(machine, id, document, typed)
	}
}

func (t *twoForms) registry(machine *v1alpha1.MachineConfig, id merge.ID, document config.Document) {
	host := merge.EscapePointer(id.Name)

	switch typed := document.(type) {
	case *cri.RegistryMirrorConfigV1Alpha1:
		if mirror := machine.MachineRegistries.RegistryMirrors[id.Name]; mirror != nil && !sameMirror(mirror, typed) {
			t.conflict("/machine/registries/mirrors/"+host, address{id: id}, winsDocument, id.Kind)
		}
	case *cri.RegistryAuthConfigV1Alpha1:
		if auth := registryOf(machine, id.Name).RegistryAuth; auth != nil && !sameAuth(auth, typed) {
			t.conflict("/machine/registries/config/"+host+"/auth", address{id: id}, winsDocument, id.Kind)
		}
	case *cri.RegistryTLSConfigV1Alpha1:
		if tls := registryOf(machine, id.Name).RegistryTLS; tls != nil && !sameTLS(tls, typed) {
			t.conflict("/machine/registries/config/"+host+"/tls", address{id: id}, winsDocument, id.Kind)
		}
	}
}

func (t *twoForms) module(machine *v1alpha1.MachineConfig, id merge.ID, module *runtime.KernelModuleConfigV1Alpha1) {
	if machine.MachineKernel == nil {
		return
	}

	for i, each := range machine.MachineKernel.KernelModules {
		if each.ModuleName == module.MetaName && !slices.Equal(each.ModuleParameters, module.ModuleParameters) {
			t.conflict(fmt.Sprintf("/machine/kernel/modules/%d", i), address{id: id}, winsDocument, id.Kind)
		}
	}
}

// udev compares all rules: those of the document stand in for all legacy ones.
func (t *twoForms) udev(machine *v1alpha1.MachineConfig, id merge.ID, document *runtime.UdevRulesConfigV1Alpha1) {
	if machine.MachineUdev == nil {
		return
	}

	for i, rule := range machine.MachineUdev.UdevRules {
		if slices.Contains(document.UdevRules, rule) {
			continue
		}

		t.findings = append(t.findings, finding{
			document: merge.ID{Kind: merge.LegacyKind}, field: fmt.Sprintf("/machine/udev/rules/%d", i), twin: address{id, "/rules"},
			err: fmt.Errorf("is lost beside %s, whose rules are the only ones that a node takes: write it as %s (rules)", id, id.Kind),
		})
	}
}

func registryOf(machine *v1alpha1.MachineConfig, host string) *v1alpha1.RegistryConfig {
	if registry := machine.MachineRegistries.RegistryConfig[host]; registry != nil {
		return registry
	}

	return &v1alpha1.RegistryConfig{}
}

func sameMirror(a, b config.RegistryMirrorConfig) bool {
	return a.SkipFallback() == b.SkipFallback() && slices.EqualFunc(a.Endpoints(), b.Endpoints(), func(a, b config.RegistryEndpointConfig) bool {
		return a.Endpoint() == b.Endpoint() && a.OverridePath() == b.OverridePath()
	})
}

func sameAuth(a, b config.RegistryAuthConfig) bool {
	return a.Username() == b.Username() && a.Password() == b.Password() && a.Auth() == b.Auth() && a.IdentityToken() == b.IdentityToken()
}

func sameTLS(a, b config.RegistryTLSConfig) bool {
	return a.InsecureSkipVerify() == b.InsecureSkipVerify() && slices.Equal(a.CA(), b.CA()) && reflect.DeepEqual(a.ClientIdentity(), b.ClientIdentity())
}

// pod compares whole pods: Talos knows a static pod by its namespace and name.
func (t *twoForms) pod(machine *v1alpha1.MachineConfig, id merge.ID, document *k8s.KubeStaticPodConfigV1Alpha1) {
	for i, each := range machine.MachinePods {
		if podName(each.Object) == podName(document.PodSpec.Object) && !reflect.DeepEqual(each.Object, document.PodSpec.Object) {
			t.conflict(fmt.Sprintf("/machine/pods/%d", i), address{id, "/pod"}, winsEither, id.Kind)
		}
	}
}

func podName(pod map[string]any) string {
	metadata, _ := pod["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	name, _ := metadata["name"].(string)

	if namespace == "" {
		namespace = "default"
	}

	return namespace + "/" + name
}

// link compares what only one can set. Addresses and routes of both forms add up.
func (t *twoForms) link(machine *v1alpha1.MachineConfig, id merge.ID, document config.Document, link config.NetworkCommonLinkConfig) {
	if machine.MachineNetwork == nil {
		return
	}

	_, physical := document.(*network.LinkConfigV1Alpha1)

	for i, device := range machine.MachineNetwork.NetworkInterfaces {
		at := fmt.Sprintf("/machine/network/interfaces/%d", i)

		for j, vlan := range device.DeviceVlans {
			if fmt.Sprintf("%s.%d", device.DeviceInterface, vlan.VlanID) == link.Name() {
				t.twoLinks(fmt.Sprintf("%s/vlans/%d", at, j), id)
			}
		}

		if device.DeviceInterface != link.Name() || device.Ignore() {
			continue
		}

		if !physical {
			t.twoLinks(at, id)

			continue
		}

		if mtu, set := link.MTU().Get(); set && device.DeviceMTU != 0 && uint64(device.DeviceMTU) != uint64(mtu) { //nolint:gosec // both are small
			t.conflict(at+"/mtu", address{id, "/mtu"}, winsDocument, id.Kind+" (mtu)")
		}
	}
}

func (t *twoForms) twoLinks(legacy string, id merge.ID) {
	t.findings = append(t.findings, finding{
		document: merge.ID{Kind: merge.LegacyKind}, field: legacy, twin: address{id: id},
		err: fmt.Errorf("is the link of %s too, and a node mixes the two: write all of it as %s, where the later layer wins", id, id.Kind),
	})
}

// kernelParameter is the one way to write the name of a kernel parameter: as sysctl does, the separator that comes first in it is taken
// for that between its parts, and the other one stands in a part.
func kernelParameter(name string) string {
	if at := strings.IndexAny(name, "./"); at < 0 || name[at] == '/' {
		return name
	}

	return strings.Map(func(r rune) rune {
		switch r {
		case '.':
			return '/'
		case '/':
			return '.'
		default:
			return r
		}
	}, name)
}

// besideFault is a fault of two values: it is the one of the legacy form that must go, and the other's object is named.
func (r *render) besideFault(f finding) *Error {
	fault := &Error{Reason: ReasonValidationFailed, Document: f.document.String(), Field: f.field, Err: f.err}
	here, there := r.setters(address{f.document, f.field}, f.twin)

	fault.Source = here
	if there != here {
		fault.Err = fmt.Errorf("%w; the other one is set in the %s", f.err, there)
	}

	return fault
}

// setters are what set values at or below the addresses last. The steps are done once more.
func (r *render) setters(here, there address) (Source, Source) {
	found := [2]Source{}
	for i := range found {
		found[i] = Source{Layer: LayerBase, Kind: KindCluster, Name: r.in.Cluster.Name}
	}

	replay := merge.New(r.provider)

	for _, step := range r.steps {
		err := step.apply(replay, func(change merge.Change) {
			for i, at := range [...]address{here, there} {
				if change.Op == merge.OpSet && change.ID == at.id && (change.Pointer == at.pointer || strings.HasPrefix(change.Pointer, at.pointer+"/")) {
					found[i] = step.source
				}
			}
		})
		if err != nil {
			break
		}
	}

	return found[0], found[1]
}
