// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/cpuset"
	"k8s.io/utils/ptr"

	"github.com/maesh-dev/ichor/internal/machineconfig/merge"
)

// kubeletRules are what the kubelet checks at its start, of what can be known without the machine. No library of Kubernetes has them.
// The fields that Talos sets itself are machinery's to refuse.
var kubeletRules = []func(*kubeletv1beta1.KubeletConfiguration) []mistake{
	kubeletPolicies, kubeletRanges, kubeletImages, kubeletEviction, kubeletReservations, kubeletDurations, kubeletNames, kubeletTaints,
}

// kubeletFlagRules are those about several fields, with the flags of the kubelet that go before one of these fields. Where there is such a
// flag, the config alone does not say whether the kubelet starts.
var kubeletFlagRules = []struct {
	rule  func(*kubeletv1beta1.KubeletConfiguration) []mistake
	flags []string
}{
	{kubeletManagers, []string{
		"cpu-manager-policy", "cpu-manager-policy-options", "eviction-hard", "kube-reserved", "memory-manager-policy", "reserved-cpus", "reserved-memory",
		"system-reserved",
	}},
	{kubeletCgroups, []string{"cgroups-per-qos", "enforce-node-allocatable"}},
}

// kubeletCheck looks at the config of the kubelet beside its flags.
func kubeletCheck(documents []config.Document) func(map[string]any) []mistake {
	return func(object map[string]any) []mistake {
		configuration, mistakes := decodeEmbedded[kubeletv1beta1.KubeletConfiguration](object)
		if configuration == nil {
			return mistakes
		}

		for _, rule := range kubeletRules {
			mistakes = append(mistakes, rule(configuration)...)
		}

		isFlag := kubeletFlags(documents)

		for _, each := range kubeletFlagRules {
			if !slices.ContainsFunc(each.flags, isFlag) {
				mistakes = append(mistakes, each.rule(configuration)...)
			}
		}

		return append(mistakes, kubeletShutdown(configuration, func(field string) bool { _, set := object[field]; return set })...)
	}
}

// kubeletFlags tells the flags that the config gives to the kubelet, in either layout.
func kubeletFlags(documents []config.Document) func(string) bool {
	set := map[string]bool{}

	for flag := range kubeletProgram.legacy(legacyOf(documents)) {
		set[flag] = true
	}

	for _, document := range documents {
		args, _ := kubeletProgram.modern(document)
		for flag := range args {
			set[flag] = true
		}
	}

	return func(flag string) bool { return set[flag] }
}

// oneOf is a mistake when a value that is set is not one of those that are allowed.
func oneOf(field, value string, allowed ...string) []mistake {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}

	return []mistake{{field, fmt.Errorf("is %q: set one of %s", value, strings.Join(allowed, ", "))}}
}

func kubeletPolicies(c *kubeletv1beta1.KubeletConfiguration) []mistake {
	mistakes := slices.Concat(
		oneOf("/cpuManagerPolicy", c.CPUManagerPolicy, "none", "static"),
		oneOf("/memoryManagerPolicy", c.MemoryManagerPolicy, "None", "Static"),
		oneOf("/topologyManagerPolicy", c.TopologyManagerPolicy, "none", "best-effort", "restricted", "single-numa-node"),
		oneOf("/topologyManagerScope", c.TopologyManagerScope, "container", "pod"),
		oneOf("/hairpinMode", c.HairpinMode, "promiscuous-bridge", "hairpin-veth", "none"),
		oneOf("/memorySwap/swapBehavior", c.MemorySwap.SwapBehavior, "NoSwap", "LimitedSwap"),
		oneOf("/configMapAndSecretChangeDetectionStrategy", string(c.ConfigMapAndSecretChangeDetectionStrategy), "Get", "Cache", "Watch"),
		oneOf("/logging/format", c.Logging.Format, "text", "json"),
		oneOf("/tlsMinVersion", c.TLSMinVersion, "VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"),
		oneOf("/cgroupDriver", c.CgroupDriver, "cgroupfs", "systemd"),
	)

	if c.RunOnce {
		mistakes = append(mistakes, mistake{"/runOnce", errors.New("the kubelet no longer has this mode: remove it")})
	}

	if ptr.Deref(c.EnableSystemLogQuery, false) && !ptr.Deref(c.EnableSystemLogHandler, true) {
		mistakes = append(mistakes, mistake{"/enableSystemLogQuery", errors.New("needs enableSystemLogHandler")})
	}

	return mistakes
}

// inRange is a mistake when a number that is set is outside its range.
func inRange[N int32 | int64](field string, value *N, least, most N) []mistake {
	if value == nil || *value >= least && *value <= most {
		return nil
	}

	return []mistake{{field, fmt.Errorf("is %d: set a number from %d to %d", *value, least, most)}}
}

// atLeast is a mistake when a number that is set is too small.
func atLeast[N int32 | int64](field string, value *N, least N) []mistake {
	if value == nil || *value >= least {
		return nil
	}

	return []mistake{{field, fmt.Errorf("is %d: set %d or more", *value, least)}}
}

func kubeletRanges(c *kubeletv1beta1.KubeletConfiguration) []mistake {
	return slices.Concat(
		atLeast("/maxPods", &c.MaxPods, 0),
		atLeast("/podsPerCore", &c.PodsPerCore, 0),
		atLeast("/podPidsLimit", c.PodPidsLimit, -1),
		atLeast("/maxOpenFiles", &c.MaxOpenFiles, 0),
		atLeast("/kubeAPIQPS", c.KubeAPIQPS, 0),
		atLeast("/kubeAPIBurst", &c.KubeAPIBurst, 0),
		atLeast("/registryPullQPS", c.RegistryPullQPS, 0),
		atLeast("/registryBurst", &c.RegistryBurst, 0),
		atLeast("/eventRecordQPS", c.EventRecordQPS, 0),
		atLeast("/eventBurst", &c.EventBurst, 0),
		atLeast("/nodeLeaseDurationSeconds", &c.NodeLeaseDurationSeconds, 0),
		atLeast("/nodeStatusMaxImages", c.NodeStatusMaxImages, -1),
		inRange("/healthzPort", c.HealthzPort, 0, 65535),
		inRange("/readOnlyPort", &c.ReadOnlyPort, 0, 65535),
		inRange("/oomScoreAdj", c.OOMScoreAdj, -1000, 1000),
		inRange("/iptablesMasqueradeBit", c.IPTablesMasqueradeBit, 0, 31),
		inRange("/iptablesDropBit", c.IPTablesDropBit, 0, 31),
		atLeast("/containerLogMaxFiles", c.ContainerLogMaxFiles, 2),
		atLeast("/containerLogMaxWorkers", c.ContainerLogMaxWorkers, 1),
		quantityMistake("/containerLogMaxSize", c.ContainerLogMaxSize),
	)
}

// Defaults of the kubelet, as far as a rule needs them.
const (
	imageGCHighThreshold = 85
	imageGCLowThreshold  = 80
)

func kubeletImages(c *kubeletv1beta1.KubeletConfiguration) []mistake {
	mistakes := slices.Concat(
		inRange("/imageGCHighThresholdPercent", c.ImageGCHighThresholdPercent, 0, 100),
		inRange("/imageGCLowThresholdPercent", c.ImageGCLowThresholdPercent, 0, 100),
		atLeast("/maxParallelImagePulls", c.MaxParallelImagePulls, 1),
	)

	high, low := ptr.Deref(c.ImageGCHighThresholdPercent, imageGCHighThreshold), ptr.Deref(c.ImageGCLowThresholdPercent, imageGCLowThreshold)
	if low >= high {
		field := "/imageGCLowThresholdPercent"
		if c.ImageGCLowThresholdPercent == nil {
			field = "/imageGCHighThresholdPercent"
		}

		mistakes = append(mistakes, mistake{field, fmt.Errorf(
			"imageGCLowThresholdPercent, which is %d, must be less than imageGCHighThresholdPercent, which is %d", low, high)})
	}

	if ptr.Deref(c.SerializeImagePulls, false) && ptr.Deref(c.MaxParallelImagePulls, 1) > 1 {
		mistakes = append(mistakes, mistake{"/maxParallelImagePulls", errors.New("must be 1 while serializeImagePulls is true")})
	}

	if most := c.ImageMaximumGCAge.Duration; most > 0 && most <= c.ImageMinimumGCAge.Duration {
		mistakes = append(mistakes, mistake{"/imageMaximumGCAge", errors.New("must be longer than imageMinimumGCAge")})
	}

	return mistakes
}

// evictionSignals are what the kubelet can watch.
var evictionSignals = []string{
	"allocatableMemory.available", "containerfs.available", "containerfs.inodesFree", "imagefs.available", "imagefs.inodesFree",
	"memory.available", "nodefs.available", "nodefs.inodesFree", "pid.available",
}

func kubeletEviction(c *kubeletv1beta1.KubeletConfiguration) []mistake {
	var mistakes []mistake

	look := func(field string, values map[string]string, check func(string) error) {
		for _, signal := range slices.Sorted(maps.Keys(values)) {
			at := field + "/" + merge.EscapePointer(signal)

			if !slices.Contains(evictionSignals, signal) {
				mistakes = append(mistakes, mistake{at, fmt.Errorf("the kubelet has no such signal: use one of %s", strings.Join(evictionSignals, ", "))})
			} else if err := check(values[signal]); err != nil {
				mistakes = append(mistakes, mistake{at, err})
			}
		}
	}

	look("/evictionHard", c.EvictionHard, thresholdFault)
	look("/evictionSoft", c.EvictionSoft, thresholdFault)
	look("/evictionMinimumReclaim", c.EvictionMinimumReclaim, reclaimFault)
	look("/evictionSoftGracePeriod", c.EvictionSoftGracePeriod, func(period string) error {
		if parsed, err := time.ParseDuration(period); err != nil || parsed < 0 {
			return fmt.Errorf("is %q: set a duration such as 90s", period)
		}

		return nil
	})

	for _, signal := range slices.Sorted(maps.Keys(c.EvictionSoft)) {
		if _, ok := c.EvictionSoftGracePeriod[signal]; !ok && slices.Contains(evictionSignals, signal) {
			mistakes = append(mistakes, mistake{
				"/evictionSoft/" + merge.EscapePointer(signal), errors.New("needs an entry in evictionSoftGracePeriod, and the kubelet does not start without it"),
			})
		}
	}

	return mistakes
}

// thresholdFault looks at a threshold: "500Mi" or "10%".
func thresholdFault(value string) error {
	if number, ok := strings.CutSuffix(value, "%"); ok {
		if percent, err := strconv.ParseFloat(number, 32); err != nil || percent < 0 || percent > 100 {
			return fmt.Errorf("is %q: set a percentage from 0%% to 100%%", value)
		}

		return nil
	}

	if quantity, err := resource.ParseQuantity(value); err != nil || quantity.Sign() <= 0 {
		return fmt.Errorf("is %q: set a positive quantity such as 500Mi, or a percentage such as 10%%", value)
	}

	return nil
}

// reclaimFault looks at how much is to be reclaimed at least, which may be nothing.
func reclaimFault(value string) error {
	if quantity, err := resource.ParseQuantity(value); err == nil && quantity.IsZero() {
		return nil
	}

	return thresholdFault(value)
}

func quantityMistake(field, value string) []mistake {
	if value == "" {
		return nil
	}

	if quantity, err := resource.ParseQuantity(value); err != nil || quantity.Sign() < 0 {
		return []mistake{{field, fmt.Errorf("is %q: set a quantity such as 500Mi", value)}}
	}

	return nil
}

// reservable are the resources that the kubelet can keep from pods.
var reservable = []string{"cpu", "memory", "ephemeral-storage", "pid"}

func kubeletReservations(c *kubeletv1beta1.KubeletConfiguration) []mistake {
	var mistakes []mistake

	for field, reserved := range map[string]map[string]string{"/systemReserved": c.SystemReserved, "/kubeReserved": c.KubeReserved} {
		for _, name := range slices.Sorted(maps.Keys(reserved)) {
			at := field + "/" + merge.EscapePointer(name)

			if !slices.Contains(reservable, name) {
				mistakes = append(mistakes, mistake{at, fmt.Errorf("the kubelet cannot reserve this: use %s", strings.Join(reservable, ", "))})
			} else if reserved[name] == "" {
				mistakes = append(mistakes, mistake{at, errors.New("is empty: set a quantity such as 500Mi")})
			} else {
				mistakes = append(mistakes, quantityMistake(at, reserved[name])...)
			}
		}
	}

	if cpus := c.ReservedSystemCPUs; cpus != "" {
		if _, err := cpuset.Parse(cpus); err != nil {
			mistakes = append(mistakes, mistake{"/reservedSystemCPUs", fmt.Errorf("is %q: set a list of CPUs such as 0-3,7", cpus)})
		}

		if c.SystemReservedCgroup != "" || c.KubeReservedCgroup != "" {
			mistakes = append(mistakes, mistake{"/reservedSystemCPUs", errors.New("does not go with systemReservedCgroup or kubeReservedCgroup")})
		}
	}

	slices.SortFunc(mistakes, func(a, b mistake) int { return strings.Compare(a.field, b.field) })

	return append(mistakes, enforcement(c)...)
}

// enforcement looks at which limits of the cgroups the kubelet is to keep.
func enforcement(c *kubeletv1beta1.KubeletConfiguration) []mistake {
	var mistakes []mistake

	needs := map[string]string{
		"pods": "", "none": "",
		"system-reserved": "systemReservedCgroup", "system-reserved-compressible": "systemReservedCgroup",
		"kube-reserved": "kubeReservedCgroup", "kube-reserved-compressible": "kubeReservedCgroup",
	}
	set := map[string]bool{"systemReservedCgroup": c.SystemReservedCgroup != "", "kubeReservedCgroup": c.KubeReservedCgroup != ""}

	for i, value := range c.EnforceNodeAllocatable {
		at := fmt.Sprintf("/enforceNodeAllocatable/%d", i)
		need, known := needs[value]

		switch {
		case !known:
			mistakes = append(mistakes, mistake{at, fmt.Errorf("is %q: set one of %s", value, strings.Join(slices.Sorted(maps.Keys(needs)), ", "))})
		case slices.Contains(c.EnforceNodeAllocatable[:i], value):
			mistakes = append(mistakes, mistake{at, errors.New("is in the list already")})
		case value == "none" && len(c.EnforceNodeAllocatable) > 1:
			mistakes = append(mistakes, mistake{at, errors.New("none stands alone")})
		case need != "" && !set[need]:
			mistakes = append(mistakes, mistake{at, fmt.Errorf("needs %s, and the kubelet does not start without it", need)})
		}
	}

	return mistakes
}

func kubeletTaints(c *kubeletv1beta1.KubeletConfiguration) []mistake {
	var mistakes []mistake

	effects := []string{string(corev1.TaintEffectNoSchedule), string(corev1.TaintEffectPreferNoSchedule), string(corev1.TaintEffectNoExecute)}

	for i, taint := range c.RegisterWithTaints {
		at := fmt.Sprintf("/registerWithTaints/%d", i)

		if faults := validation.IsQualifiedName(taint.Key); len(faults) > 0 {
			mistakes = append(mistakes, mistake{at + "/key", fmt.Errorf("is no key of a taint: %s", strings.Join(faults, ", "))})
		}

		if faults := validation.IsValidLabelValue(taint.Value); len(faults) > 0 {
			mistakes = append(mistakes, mistake{at + "/value", fmt.Errorf("is no value of a taint: %s", strings.Join(faults, ", "))})
		}

		if !slices.Contains(effects, string(taint.Effect)) {
			mistakes = append(mistakes, mistake{at + "/effect", fmt.Errorf("is %q: set one of %s", taint.Effect, strings.Join(effects, ", "))})
		}
	}

	return mistakes
}
