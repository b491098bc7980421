// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"
)

// kubeletShutdown looks at how pods end when the machine stops. Talos sets both periods where the config does not, so that one alone may not
// go with Talos' other.
func kubeletShutdown(c *kubeletv1beta1.KubeletConfiguration, isSet func(string) bool) []mistake {
	const wholeField, criticalField = "shutdownGracePeriod", "shutdownGracePeriodCriticalPods"

	whole, critical := c.ShutdownGracePeriod.Duration, c.ShutdownGracePeriodCriticalPods.Duration

	var mistakes []mistake

	for _, each := range []struct {
		field  string
		period time.Duration
	}{{wholeField, whole}, {criticalField, critical}} {
		if each.period != 0 && each.period < time.Second {
			mistakes = append(mistakes, mistake{"/" + each.field, errors.New("must be 0s, or 1s and more")})
		}
	}

	if len(mistakes) > 0 {
		return mistakes
	}

	if !isSet(wholeField) {
		whole = constants.KubeletShutdownGracePeriod
	}

	if !isSet(criticalField) {
		critical = constants.KubeletShutdownGracePeriodCriticalPods
	}

	if critical > whole {
		field := criticalField
		if !isSet(criticalField) {
			field = wholeField
		}

		mistakes = append(mistakes, mistake{"/" + field, fmt.Errorf(
			"%s, which is %s, must not be longer than %s, which is %s and of which it is a part: set both (Talos' own are %s and %s)", criticalField, critical,
			wholeField, whole, constants.KubeletShutdownGracePeriodCriticalPods, constants.KubeletShutdownGracePeriod)})
	}

	if len(c.ShutdownGracePeriodByPodPriority) > 0 && (whole > 0 || critical > 0) {
		mistakes = append(mistakes, mistake{"/shutdownGracePeriodByPodPriority", fmt.Errorf(
			"does not go with %s and %s, which Talos sets unless they are there: set both to 0s", wholeField, criticalField)})
	}

	return mistakes
}

// kubeletDurations looks at times and shares that the kubelet bounds.
func kubeletDurations(c *kubeletv1beta1.KubeletConfiguration) []mistake {
	var mistakes []mistake

	bounded := func(field string, value time.Duration, least, most time.Duration) {
		if value < least || value > most {
			mistakes = append(mistakes, mistake{field, fmt.Errorf("is %s: set a duration from %s to %s", value, least, most)})
		}
	}

	if interval := c.ContainerLogMonitorInterval; interval != nil && interval.Duration < 3*time.Second {
		mistakes = append(mistakes, mistake{"/containerLogMonitorInterval", errors.New("must be 3s or more")})
	}

	if period := c.CPUCFSQuotaPeriod; period != nil {
		bounded("/cpuCFSQuotaPeriod", period.Duration, time.Millisecond, time.Second)
	}

	if period := c.CrashLoopBackOff.MaxContainerRestartPeriod; period != nil {
		bounded("/crashLoopBackOff/maxContainerRestartPeriod", period.Duration, time.Second, 300*time.Second)
	}

	for _, each := range []struct {
		field string
		age   time.Duration
	}{{"/imageMinimumGCAge", c.ImageMinimumGCAge.Duration}, {"/imageMaximumGCAge", c.ImageMaximumGCAge.Duration}} {
		if each.age < 0 {
			mistakes = append(mistakes, mistake{each.field, errors.New("must not be negative")})
		}
	}

	if factor := c.MemoryThrottlingFactor; factor != nil && (*factor <= 0 || *factor > 1) {
		mistakes = append(mistakes, mistake{"/memoryThrottlingFactor", errors.New("must be more than 0, and 1 at most")})
	}

	return mistakes
}

// kubeletNames looks at addresses, paths and names that the kubelet reads at its start.
func kubeletNames(c *kubeletv1beta1.KubeletConfiguration) []mistake {
	var mistakes []mistake

	for i, address := range c.ClusterDNS {
		if !isIP(address) {
			mistakes = append(mistakes, mistake{fmt.Sprintf("/clusterDNS/%d", i), errAddress})
		}
	}

	for field, address := range map[string]string{"/address": c.Address, "/healthzBindAddress": c.HealthzBindAddress} {
		if address != "" && !isIP(address) {
			mistakes = append(mistakes, mistake{field, errAddress})
		}
	}

	if dir := c.PodLogsDir; dir != "" && (!path.IsAbs(dir) || path.Clean(dir) != dir) {
		mistakes = append(mistakes, mistake{"/podLogsDir", errors.New("must be a whole path without // and .., such as /var/log/pods")})
	}

	for i, name := range c.TLSCipherSuites {
		if !isCipher(name) {
			mistakes = append(mistakes, mistake{fmt.Sprintf("/tlsCipherSuites/%d", i), fmt.Errorf(
				"is %q, which no program knows: use names such as TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", name)})
		}
	}

	for i, name := range c.AllowedUnsafeSysctls {
		if !isNamespaced(name) {
			mistakes = append(mistakes, mistake{fmt.Sprintf("/allowedUnsafeSysctls/%d", i), fmt.Errorf(
				"is %q, which no pod has for itself, and the kubelet does not start: allowed are net.*, fs.mqueue.*, kernel.sem, kernel.shm* and kernel.msg*", name)})
		}
	}

	slices.SortFunc(mistakes, func(a, b mistake) int { return strings.Compare(a.field, b.field) })

	return mistakes
}

// isNamespaced tells a parameter of the kernel, or a pattern of such, that each pod has for itself.
func isNamespaced(name string) bool {
	prefix, rest, pattern := strings.Cut(strings.ReplaceAll(name, "/", "."), "*")

	// A star stands at the end alone.
	if rest != "" {
		return false
	}

	if strings.HasPrefix(prefix, "net.") || strings.HasPrefix(prefix, "fs.mqueue.") {
		return true
	}

	if pattern {
		return slices.Contains([]string{"kernel.sem", "kernel.shm", "kernel.msg"}, prefix)
	}

	return slices.Contains([]string{
		"kernel.sem", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced", "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni",
	}, prefix)
}

// oldCiphers are names that crypto/tls has given up, and that the kubelet and etcd still take.
var oldCiphers = []string{"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305"}

func isCipher(name string) bool {
	is := func(suite *tls.CipherSuite) bool { return suite.Name == name }

	return slices.Contains(oldCiphers, name) || slices.ContainsFunc(tls.CipherSuites(), is) || slices.ContainsFunc(tls.InsecureCipherSuites(), is)
}

// kubeletManagers looks at what the managers of CPUs and memory ask for before they start.
func kubeletManagers(c *kubeletv1beta1.KubeletConfiguration) []mistake {
	var mistakes []mistake

	switch {
	case c.CPUManagerPolicy == "static" && !reservesCPU(c):
		mistakes = append(mistakes, mistake{"/cpuManagerPolicy", errors.New(
			"is static, which needs CPU that is reserved: set cpu in kubeReserved or systemReserved, or reservedSystemCPUs")})
	case (c.CPUManagerPolicy == "" || c.CPUManagerPolicy == "none") && len(c.CPUManagerPolicyOptions) > 0:
		mistakes = append(mistakes, mistake{"/cpuManagerPolicyOptions", errors.New("needs cpuManagerPolicy static, and the kubelet does not start without it")})
	}

	return append(mistakes, reservedMemory(c)...)
}

// kubeletCgroups looks at which cgroups the kubelet makes, and which limits of them it keeps.
func kubeletCgroups(c *kubeletv1beta1.KubeletConfiguration) []mistake {
	var mistakes []mistake

	if !ptr.Deref(c.CgroupsPerQOS, true) && !slices.Equal(c.EnforceNodeAllocatable, []string{"none"}) && (c.EnforceNodeAllocatable == nil || len(c.EnforceNodeAllocatable) > 0) {
		mistakes = append(mistakes, mistake{"/cgroupsPerQOS", errors.New("may be false with enforceNodeAllocatable: [none] alone")})
	}

	for _, sort := range []string{"system-reserved", "kube-reserved"} {
		if slices.Contains(c.EnforceNodeAllocatable, sort) && slices.Contains(c.EnforceNodeAllocatable, sort+"-compressible") {
			mistakes = append(mistakes, mistake{"/enforceNodeAllocatable", fmt.Errorf("has %s and %s-compressible: remove one", sort, sort)})
		}
	}

	return mistakes
}

// reservesCPU says whether any CPU is kept from pods. Talos keeps some in systemReserved unless the config sets anything there.
func reservesCPU(c *kubeletv1beta1.KubeletConfiguration) bool {
	if c.ReservedSystemCPUs != "" || len(c.SystemReserved) == 0 {
		return true
	}

	return slices.ContainsFunc([]string{c.SystemReserved["cpu"], c.KubeReserved["cpu"]}, func(value string) bool {
		quantity, err := resource.ParseQuantity(value)

		// What is no quantity is told of elsewhere.
		return value != "" && (err != nil || quantity.Sign() > 0)
	})
}

// reservedMemory looks at the memory that is reserved on NUMA nodes, which must be as much as is reserved in all.
func reservedMemory(c *kubeletv1beta1.KubeletConfiguration) []mistake {
	const field = "/reservedMemory"

	if c.MemoryManagerPolicy == "Static" && len(c.ReservedMemory) == 0 {
		return []mistake{{"/memoryManagerPolicy", errors.New("is Static, which needs reservedMemory")}}
	}

	var (
		mistakes []mistake
		sum      resource.Quantity
	)

	seen := map[string]bool{}

	for i, reserved := range c.ReservedMemory {
		for _, name := range slices.Sorted(maps.Keys(reserved.Limits)) {
			limit := reserved.Limits[name]
			at := fmt.Sprintf("%s/%d/limits/%s", field, i, name)
			key := fmt.Sprintf("%d/%s", reserved.NumaNode, name)

			switch {
			case name != corev1.ResourceMemory && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
				mistakes = append(mistakes, mistake{at, errors.New("cannot be reserved: use memory or hugepages-<size>")})
			case limit.Sign() <= 0:
				mistakes = append(mistakes, mistake{at, errors.New("must be more than nothing")})
			case seen[key]:
				mistakes = append(mistakes, mistake{at, fmt.Errorf("is reserved on NUMA node %d already", reserved.NumaNode)})
			}

			seen[key] = true

			if name == corev1.ResourceMemory {
				sum.Add(limit)
			}
		}
	}

	want, known := memoryToReserve(c)
	if c.MemoryManagerPolicy != "Static" || len(mistakes) > 0 || !known || sum.Cmp(want) == 0 {
		return mistakes
	}

	return []mistake{{field, fmt.Errorf("has %s of memory, and must have %s: as much as kubeReserved, systemReserved and evictionHard together", sum.String(), want.String())}}
}

// memoryToReserve is what is kept from pods. It is not known where Talos' own value, which depends on the machine's role, or a share counts.
func memoryToReserve(c *kubeletv1beta1.KubeletConfiguration) (resource.Quantity, bool) {
	const usualEviction = "100Mi"

	var sum resource.Quantity

	if len(c.SystemReserved) == 0 {
		return sum, false
	}

	eviction, set := c.EvictionHard["memory.available"]
	if !set && (len(c.EvictionHard) == 0 || ptr.Deref(c.MergeDefaultEvictionSettings, false)) {
		eviction = usualEviction
	}

	for _, value := range []string{c.SystemReserved["memory"], c.KubeReserved["memory"], eviction} {
		if value == "" {
			continue
		}

		quantity, err := resource.ParseQuantity(value)
		if err != nil {
			return sum, false
		}

		sum.Add(quantity)
	}

	return sum, true
}
