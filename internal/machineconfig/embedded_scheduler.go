// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	componentbasev1alpha1 "k8s.io/component-base/config/v1alpha1"
	kubeproxyv1alpha1 "k8s.io/kube-proxy/config/v1alpha1"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"
)

// checkScheduler checks what the scheduler checks at its start, of what can be known without it. No library of Kubernetes has it.
func checkScheduler(object map[string]any) []mistake {
	configuration, mistakes := decodeEmbedded[schedulerv1.KubeSchedulerConfiguration](object)
	if configuration == nil {
		return mistakes
	}

	mistakes = slices.Concat(mistakes,
		inRange("/percentageOfNodesToScore", configuration.PercentageOfNodesToScore, 0, 100),
		inRange("/parallelism", configuration.Parallelism, 1, 1<<20),
		inRange("/podInitialBackoffSeconds", configuration.PodInitialBackoffSeconds, 1, 1<<20),
		inRange("/podMaxBackoffSeconds", configuration.PodMaxBackoffSeconds, 1, 1<<20),
		schedulerProfiles(configuration.Profiles),
		leaderElection(configuration.LeaderElection),
	)

	if first, last := configuration.PodInitialBackoffSeconds, configuration.PodMaxBackoffSeconds; first != nil && last != nil && *last < *first {
		mistakes = append(mistakes, mistake{"/podMaxBackoffSeconds", fmt.Errorf("is less than podInitialBackoffSeconds, which is %d", *first)})
	}

	for i, extender := range configuration.Extenders {
		if server, err := url.Parse(extender.URLPrefix); err != nil || server.Host == "" {
			mistakes = append(mistakes, mistake{fmt.Sprintf("/extenders/%d/urlPrefix", i), errors.New("must be a URL, such as https://extender.example.com/scheduler")})
		}

		if extender.PrioritizeVerb != "" && extender.Weight <= 0 {
			mistakes = append(mistakes, mistake{fmt.Sprintf("/extenders/%d/weight", i), errors.New("must be 1 or more beside prioritizeVerb")})
		}
	}

	return mistakes
}

func schedulerProfiles(profiles []schedulerv1.KubeSchedulerProfile) []mistake {
	var mistakes []mistake

	names := map[string]bool{}

	for i, profile := range profiles {
		at := fmt.Sprintf("/profiles/%d", i)
		mistakes = append(mistakes, inRange(at+"/percentageOfNodesToScore", profile.PercentageOfNodesToScore, 0, 100)...)

		name := "default-scheduler"

		switch {
		case profile.SchedulerName != nil && *profile.SchedulerName != "":
			name = *profile.SchedulerName
		case len(profiles) > 1:
			mistakes = append(mistakes, mistake{at + "/schedulerName", errors.New("must be set when there are several profiles")})

			continue
		}

		if names[name] {
			mistakes = append(mistakes, mistake{at + "/schedulerName", fmt.Errorf("is %s as in another profile: pods choose a profile by this name", name)})
		}

		names[name] = true
	}

	return mistakes
}

// leaderElection needs its times in order. What is not set has a default that goes with the defaults of the others.
func leaderElection(election componentbasev1alpha1.LeaderElectionConfiguration) []mistake {
	lease, renew, retry := election.LeaseDuration.Duration, election.RenewDeadline.Duration, election.RetryPeriod.Duration

	switch {
	case lease < 0 || renew < 0 || retry < 0:
		return []mistake{{"/leaderElection", errors.New("has a time below zero")}}
	case lease != 0 && renew != 0 && renew >= lease:
		return []mistake{{"/leaderElection/renewDeadline", fmt.Errorf("must be shorter than leaseDuration, which is %s", lease)}}
	case renew != 0 && retry != 0 && retry >= renew:
		return []mistake{{"/leaderElection/retryPeriod", fmt.Errorf("must be shorter than renewDeadline, which is %s", renew)}}
	default:
		return nil
	}
}

// checkProxy checks what kube-proxy checks at its start, of what can be known without it. No library of Kubernetes has it.
func checkProxy(object map[string]any) []mistake {
	configuration, mistakes := decodeEmbedded[kubeproxyv1alpha1.KubeProxyConfiguration](object)
	if configuration == nil {
		return mistakes
	}

	mistakes = slices.Concat(mistakes,
		oneOf("/mode", string(configuration.Mode), "nftables", "iptables", "ipvs"),
		oneOf("/detectLocalMode", string(configuration.DetectLocalMode), "ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix"),
		inRange("/oomScoreAdj", configuration.OOMScoreAdj, -1000, 1000),
		inRange("/iptables/masqueradeBit", configuration.IPTables.MasqueradeBit, 0, 31),
		inRange("/nftables/masqueradeBit", configuration.NFTables.MasqueradeBit, 0, 31),
		listenAddress("/healthzBindAddress", configuration.HealthzBindAddress),
		listenAddress("/metricsBindAddress", configuration.MetricsBindAddress),
	)

	if address := configuration.BindAddress; address != "" && !isIP(address) {
		mistakes = append(mistakes, mistake{"/bindAddress", errAddress})
	}

	if configuration.ClusterCIDR != "" {
		for part := range strings.SplitSeq(configuration.ClusterCIDR, ",") {
			mistakes = append(mistakes, cidr("/clusterCIDR", part)...)
		}
	}

	for i, each := range configuration.NodePortAddresses {
		if each != "primary" {
			mistakes = append(mistakes, cidr(fmt.Sprintf("/nodePortAddresses/%d", i), each)...)
		}
	}

	return mistakes
}

func cidr(field, text string) []mistake {
	if _, err := netip.ParsePrefix(text); err == nil {
		return nil
	}

	return []mistake{{field, errors.New("is no network: write it as 10.244.0.0/16")}}
}

func listenAddress(field, text string) []mistake {
	if text == "" {
		return nil
	}

	if host, _, err := net.SplitHostPort(text); err == nil && isIP(host) {
		return nil
	}

	return []mistake{{field, errors.New("must be an IP address and a port, such as 0.0.0.0:10249")}}
}
